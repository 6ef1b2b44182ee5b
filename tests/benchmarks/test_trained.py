"""The trained models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from benchmarks.trained import clips, codec, moving_scenes, places, scenes, text, weights
from benchmarks.trained.latent import find_codec
from benchmarks.trained.layouts import Layouts
from benchmarks.trained.network import SHAPES
from benchmarks.training.composing import compose
from benchmarks.training.library import Library


@pytest.mark.parametrize("frames", [(), (5,)])
def test_the_transform_loses_nothing_and_keeps_noise_white(frames: tuple[int, ...]) -> None:
    x = torch.randn(2, 3, *frames, 32, 48, generator=torch.Generator().manual_seed(0))
    latent = codec.split_bands(x)
    assert latent.shape == (2, 12, *frames, 16, 24)
    torch.testing.assert_close(codec.join_bands(latent), x)
    torch.testing.assert_close(latent.square().sum(), x.square().sum())


def draw_unseen(model: str) -> torch.Tensor:
    """Eight pictures or clips that no model was trained on, (8, 3, ..., H, W) in [0, 1]."""
    rng, generator = np.random.default_rng(987), torch.Generator().manual_seed(0)
    if model == "wan":
        drawn = [moving_scenes.draw(rng, clips.SIDE) for _ in range(8)]
        return clips.crop(drawn, 32, generator) / 2 + 0.5
    if model == "flux-emoji":
        disc = torch.full((1, 1, 4, 256, 256), 255, dtype=torch.uint8)
        disc[:, :, 1] = 128
        surfaces = torch.zeros(3, 3, 8, 8, dtype=torch.uint8)
        none = torch.zeros(8, dtype=torch.long)
        layouts = Layouts(none, none - 1, none, torch.arange(8))
        return compose(layouts, Library([""], disc, surfaces), 256, 1, generator)[:, :, 0]
    pixels = np.stack([scenes.draw(rng, 64).pixels for _ in range(8)])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255


@pytest.mark.parametrize("model", places.WEIGHTS)
def test_weights_tell_unseen_scenes_from_noise(model: str) -> None:
    """What ComfyUI reads from the answer has a smaller error than a picture without details."""
    patcher = weights.load(places.WEIGHTS[model])
    schedule = patcher.get_model_object("model_sampling")
    pixels = draw_unseen(model)
    encoded = find_codec(patcher.model.latent_format.latent_channels).encode(pixels)
    latent = patcher.model.process_latent_in(encoded)
    noise = torch.randn(latent.shape, generator=torch.Generator().manual_seed(0))
    sigmas = schedule.sigmas[len(schedule.sigmas) // 2 - 1].expand(len(latent))
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
    assert sum(sizes) <= 55_000_000  # 40 without those of drawn shapes that the next models replace


def test_a_matrix_in_8_bits_is_read_with_the_scales_of_its_rows(tmp_path: Path) -> None:
    place = tmp_path / "weights.safetensors"
    tensors = {
        "a": torch.tensor([[127, -127], [1, 0]], dtype=torch.int8),
        f"a{weights.ROW_SCALE}": torch.tensor([0.5, 2.0]),
        "b": torch.arange(3.0),
        weights.SCALES: torch.ones(12),
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
