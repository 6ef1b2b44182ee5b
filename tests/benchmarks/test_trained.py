"""The trained models, and how they were trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from comfy.model_sampling import ModelSamplingDiscreteFlow
from rich.console import Console
from torch import Tensor, nn

from benchmarks.trained import codec, log, places, text, train, weights
from benchmarks.trained.examples import SOURCES
from benchmarks.trained.flux import FluxShape
from benchmarks.trained.network import SHAPES, Shape, build_network
from benchmarks.trained.recipe import ON_CPU, Recipe, Stage
from benchmarks.trained.target import answer, compute_target
from benchmarks.trained.training import copy_saved_tensors
from benchmarks.trained.unet import UNetShape
from benchmarks.trained.wan import WanShape

NARROW = (UNetShape(32, 32), FluxShape(1, 1, 1), WanShape(1, 1))


@pytest.mark.parametrize("frames", [(), (5,)])
def test_the_transform_loses_nothing_and_keeps_noise_white(frames: tuple[int, ...]) -> None:
    x = torch.randn(2, 3, *frames, 32, 48, generator=torch.Generator().manual_seed(0))
    latent = codec.split_bands(x)
    assert latent.shape == (2, 12, *frames, 16, 24)
    torch.testing.assert_close(codec.join_bands(latent), x)
    torch.testing.assert_close(latent.square().sum(), x.square().sum())


def draw_unseen(kind: str, folder: Path) -> torch.Tensor:
    """Eight pictures or clips that no model was trained on, (8, 3, ..., H, W)."""
    data = SOURCES[kind].load(folder, 8, 987)
    tokens, frames = (16, 5) if kind == "wan" else (32, 1)
    return data.batch(torch.arange(8), Stage(tokens, 8, 1, frames), torch.Generator())


@pytest.mark.parametrize("kind", SHAPES)
def test_weights_predict_unseen_scenes_better_than_a_constant(kind: str, tmp_path: Path) -> None:
    model = weights.load(places.WEIGHTS[kind])
    schedule = model.get_model_object("model_sampling")
    latent = model.model.process_latent_in(codec.split_bands(draw_unseen(kind, tmp_path)))
    noise = torch.randn(latent.shape, generator=torch.Generator().manual_seed(0))
    sigmas = schedule.sigmas[torch.arange(len(latent)) * 100 + 150]
    noised = schedule.noise_scaling(sigmas, noise, latent)
    velocity = compute_target(schedule, sigmas, noised, latent)
    prompt = text.encode(text.build_encoder(), "")[None].expand(len(latent), -1, -1)
    with torch.no_grad():
        state = schedule.calculate_input(sigmas, noised)
        times = schedule.timestep(sigmas).float()
        found = model.model.diffusion_model(state, times, context=prompt)
    assert (found - velocity).square().mean() < 0.4 * velocity.var()


def test_all_weights_together_stay_small() -> None:
    sizes = [place.stat().st_size for place in places.FOLDER.rglob("*.safetensors")]
    assert len(sizes) >= len(SHAPES)
    assert sum(sizes) <= 40_000_000


@pytest.mark.parametrize("shape", NARROW)
def test_training_asks_for_the_answer_that_comfyui_reads_the_picture_from(shape: Shape) -> None:
    model = build_network(shape, torch.ones(12))
    schedule = model.get_model_object("model_sampling")
    sides = (3, 4, 4) if shape.kind == "wan" else (4, 4)
    latent, noise = torch.randn(2, 5, 12, *sides, generator=torch.Generator().manual_seed(0))
    sigmas = schedule.sigmas[torch.tensor([50, 300, 500, 700, 950])]
    level = sigmas.view(-1, 1, *[1] * len(sides))
    noised = schedule.noise_scaling(sigmas, noise, latent)
    answer = compute_target(schedule, sigmas, noised, latent)
    torch.testing.assert_close(
        schedule.calculate_denoised(sigmas, answer, noised), latent, atol=1e-4, rtol=1e-4
    )
    if shape.kind == "unet":  # velocity, arXiv 2202.00512
        published = (noise - level * latent) / (1 + level**2).sqrt()
    else:  # rectified flow, arXiv 2209.03003
        published = noise - latent
    torch.testing.assert_close(answer, published, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_network_answers_in_the_precision_of_the_training(dtype: torch.dtype) -> None:
    model = build_network(NARROW[0], torch.ones(12))
    computed: list[torch.dtype] = []

    def network(x: torch.Tensor, *_: object, context: torch.Tensor) -> torch.Tensor:
        computed.append((x @ x).dtype)
        return x

    schedule = model.get_model_object("model_sampling")
    noised, prompts = torch.ones(2, 12, 4, 4), torch.ones(2, 77, 8)
    answer(network, schedule, torch.ones(2), noised, prompts, dtype)
    assert computed == [dtype]


@pytest.mark.parametrize("shape", NARROW)
def test_a_stopped_training_ends_with_the_weights_of_one_that_was_not(
    shape: Shape, tmp_path: Path
) -> None:
    recipe = Recipe((Stage(8, 2, 2), Stage(16, 2, 2)), warm_up=1)
    quiet = Console(quiet=True)
    ends = []
    for name, stops in (("whole", (None,)), ("stopped", (3, None))):
        run = train.TrainingRun((recipe,), tmp_path / name, torch.device("cpu"), shape, examples=8)
        place = tmp_path / name / "weights.safetensors"
        for stop in stops:
            state = train.train(run, place, quiet, until=stop)
        ends.append(state)
        loaded = weights.load(place).model.diffusion_model.state_dict()
        trained = state.network.state_dict()
        assert {name: weight.shape for name, weight in loaded.items()} == {
            name: weight.shape for name, weight in trained.items()
        }
    assert ends[0].losses == pytest.approx(ends[1].losses, rel=1e-5)
    for name, weight in ends[0].average_weights().items():
        torch.testing.assert_close(ends[1].average_weights()[name], weight)


def test_a_later_part_starts_from_the_weights_of_the_part_before(tmp_path: Path) -> None:
    first = Recipe((Stage(8, 2, 2),), warm_up=1)
    still = Recipe((Stage(8, 2, 2),), rate=0.0, last_rate=0.0, warm_up=1, seed=1)
    run = train.TrainingRun((first, still), tmp_path, torch.device("cpu"), NARROW[1], examples=8)
    place = tmp_path / "trained" / "scenes.safetensors"
    train.train(run, place, Console(quiet=True))
    before = weights.read(tmp_path / "flux-part-1" / place.name)
    for name, weight in weights.read(place).tensors.items():
        torch.testing.assert_close(weight, before.tensors[name])
    parts = log.read(places.find_training_log(place))
    assert [(part.recipe, len(part.losses)) for part in parts] == [(first, 2), (still, 2)]


@pytest.mark.parametrize("kind", SHAPES)
def test_the_log_beside_the_weights_is_of_the_published_recipe(kind: str) -> None:
    parts = log.read(places.find_training_log(places.WEIGHTS[kind]))
    assert tuple(part.recipe for part in parts) == ON_CPU[kind]
    assert all(len(part.losses) == part.recipe.steps for part in parts)


def test_shifted_noise_levels_are_those_of_the_published_schedule() -> None:
    levels = torch.linspace(0, 1, 9)
    shifted = ModelSamplingDiscreteFlow()
    shifted.set_parameters(shift=3.0, multiplier=1.0)
    expected = shifted.sigma(levels.clamp(min=1e-6))
    torch.testing.assert_close(Recipe((), shift=3.0).shift_levels(levels), expected)
    assert Recipe(()).shift_levels(levels).equal(levels)


def test_the_backward_pass_reads_what_was_there_before_a_network_wrote_over_it() -> None:
    def run(add: Callable[[Tensor, float], Tensor]) -> Tensor:
        weight = nn.Parameter(torch.linspace(-1, 1, 256))
        with copy_saved_tensors():
            x = weight * 1
            for _ in range(8):
                square = x * x
                x = square.sin()
                add(square, 1.0)  # the sine's gradient reads it
                del square  # the next tensor lies where this one lay
                x = add(x, 0.1)
            x.sum().backward()
        assert weight.grad is not None
        return weight.grad

    expected = run(Tensor.add)
    for _ in range(200):
        torch.testing.assert_close(run(Tensor.add_), expected)
