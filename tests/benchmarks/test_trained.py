"""The trained models."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from benchmarks.trained import autoencoder, places, text, weights
from benchmarks.trained.layouts import Layouts
from benchmarks.trained.network import SHAPES
from benchmarks.trained.wan import FRAMES
from benchmarks.training.composing import compose
from benchmarks.training.library import Library


def draw_scenes(count: int, frames: int) -> torch.Tensor:
    """(count, 3, frames, 256, 256) in [0, 1]: an orange square, which no model was trained on."""
    square = torch.full((1, frames, 4, 256, 256), 255, dtype=torch.uint8)
    square[:, :, 1] = 128
    surfaces = torch.zeros(3, 3, 8, 8, dtype=torch.uint8)
    none = torch.zeros(count, dtype=torch.long)
    layouts = Layouts(none, none - 1, none, torch.arange(count))
    return compose(
        layouts, Library([""], square, surfaces), 256, frames, torch.Generator().manual_seed(0)
    )


@pytest.mark.parametrize("model", places.WEIGHTS)
def test_weights_tell_unseen_scenes_from_noise(model: str) -> None:
    """What ComfyUI reads from the answer has a smaller error than a picture without details."""
    patcher = weights.load(places.WEIGHTS[model])
    schedule = patcher.get_model_object("model_sampling")
    # a clip has as many tokens as nine pictures
    pixels = draw_scenes(2, FRAMES) if model == "wan" else draw_scenes(8, 1)[:, :, 0]
    latent = patcher.model.process_latent_in(autoencoder.encode(pixels))
    noise = torch.randn(latent.shape, generator=torch.Generator().manual_seed(0))
    # less noise for the UNet, which errs more on things that it never saw
    part = 3 if model == "unet" else 2
    sigmas = schedule.sigmas[len(schedule.sigmas) // part - 1].expand(len(latent))
    noised = schedule.noise_scaling(sigmas, noise, latent)
    prompt = text.encode(text.build_encoder(), "")[None].expand(len(latent), -1, -1)
    with torch.no_grad():
        state = schedule.calculate_input(sigmas, noised)
        times = schedule.timestep(sigmas).float()
        answer = patcher.model.diffusion_model(state, times, context=prompt)
    found = schedule.calculate_denoised(sigmas, answer, noised)
    assert (found - latent).square().mean() < 0.4 * latent.var()


def test_all_weights_together_stay_small() -> None:
    sizes = [place.stat().st_size for place in places.FOLDER.rglob("*.safetensors")]
    assert len(sizes) >= len(SHAPES)
    assert sum(sizes) <= 40_000_000


def test_a_matrix_in_8_bits_is_read_with_the_scales_of_its_rows(tmp_path: Path) -> None:
    place = tmp_path / "weights.safetensors"
    tensors = {
        "a": torch.tensor([[127, -127], [1, 0]], dtype=torch.int8),
        f"a{weights.ROW_SCALE}": torch.tensor([0.5, 2.0]),
        "b": torch.arange(3.0),
        weights.SCALES: torch.ones(32),
    }
    save_file(tensors, place, {"kind": '"flux"', "shape": '{"heads": 1}'})
    found = weights.read(place)
    assert found.tensors["a"].tolist() == [[63.5, -63.5], [2, 0]]
    assert found.tensors["b"].tolist() == [0, 1, 2]
    assert found.shape == SHAPES["flux"](heads=1)


def test_a_file_of_other_weights_is_named(tmp_path: Path) -> None:
    place = tmp_path / "text.safetensors"
    with pytest.raises(FileNotFoundError, match="is missing"):
        weights.read(place)
    place.write_text("no weights")
    with pytest.raises(RuntimeError, match="is no file of our weights"):
        weights.read(place)
