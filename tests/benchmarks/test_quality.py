"""The trained model, its training and the metrics that it is judged by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from comfy.model_patcher import ModelPatcher
from rich.console import Console
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from benchmarks.quality import codec, metrics, places, sampling, scenes, text, train, unet, weights
from benchmarks.quality.flux import FluxShape
from benchmarks.quality.network import Shape
from benchmarks.quality.report import Report
from benchmarks.quality.training import Recipe, Stage, best_output
from benchmarks.quality.unet import UNetShape
from benchmarks.quality.variants import variants


@pytest.fixture(scope="module")
def model() -> ModelPatcher:
    return weights.load()


@pytest.fixture(scope="module")
def pictures() -> torch.Tensor:
    """Not trained on: another seed."""
    rng = np.random.default_rng(987)
    drawn = [scenes.draw(rng, 64).pixels for _ in range(8)]
    return torch.from_numpy(np.stack(drawn)).permute(0, 3, 1, 2).float() / 127.5 - 1


def test_the_transform_loses_nothing_and_keeps_noise_white() -> None:
    x = torch.randn(2, 3, 32, 48, generator=torch.Generator().manual_seed(0))
    latent = codec.bands(x)
    assert latent.shape == (2, 12, 16, 24)
    torch.testing.assert_close(codec.pixels(latent), x)
    torch.testing.assert_close(latent.square().sum(), x.square().sum())


@pytest.mark.parametrize("kind", places.WEIGHTS)
def test_weights_predict_unseen_scenes_better_than_a_constant(
    kind: str, pictures: torch.Tensor
) -> None:
    model = weights.load(places.WEIGHTS[kind])
    schedule = model.get_model_object("model_sampling")
    latent = model.model.process_latent_in(codec.bands(pictures))
    noise = torch.randn(latent.shape, generator=torch.Generator().manual_seed(0))
    sigmas = schedule.sigmas[torch.arange(len(latent)) * 100 + 150]
    noised = schedule.noise_scaling(sigmas, noise, latent)
    velocity = best_output(schedule, sigmas, noised, latent)
    prompt = text.encode(text.encoder(), "")[None].expand(len(latent), -1, -1)
    with torch.no_grad():
        state = schedule.calculate_input(sigmas, noised)
        times = schedule.timestep(sigmas).float()
        found = model.model.diffusion_model(state, times, context=prompt)
    assert (found - velocity).square().mean() < 0.4 * velocity.var()


@pytest.mark.parametrize("shape", [UNetShape(32, 32), FluxShape(1, 1, 1)])
def test_training_asks_for_the_answer_that_comfyui_reads_the_picture_from(shape: Shape) -> None:
    model = shape.build(torch.ones(12))
    schedule = model.get_model_object("model_sampling")
    latent, noise = torch.randn(2, 5, 12, 4, 4, generator=torch.Generator().manual_seed(0))
    sigmas = schedule.sigmas[torch.tensor([50, 300, 500, 700, 950])]
    level = sigmas.view(-1, 1, 1, 1)
    noised = schedule.noise_scaling(sigmas, noise, latent)
    answer = best_output(schedule, sigmas, noised, latent)
    torch.testing.assert_close(
        schedule.calculate_denoised(sigmas, answer, noised), latent, atol=1e-4, rtol=1e-4
    )
    if shape.kind == "unet":  # velocity, arXiv 2202.00512
        published = (noise - level * latent) / (1 + level**2).sqrt()
    else:  # rectified flow, arXiv 2209.03003
        published = noise - latent
    torch.testing.assert_close(answer, published, atol=1e-3, rtol=1e-3)


def test_the_same_seed_gives_the_same_picture_whatever_is_beside_it(model: ModelPatcher) -> None:
    prompts = torch.stack([text.encode(text.encoder(), "a red circle on grass")] * 2)
    both = sampling.sample(model, sampling.Batch(prompts, (7, 8), 8), steps=2)
    alone = sampling.sample(model, sampling.Batch(prompts[:1], (8,), 8), steps=2)
    torch.testing.assert_close(alone.latent[0], both.latent[1], atol=1e-4, rtol=1e-4)
    assert not torch.allclose(both.latent[0], both.latent[1], atol=1e-2)


def test_predictions_on_plains_states_are_plains_own(model: ModelPatcher) -> None:
    prompts = text.encode(text.encoder(), "a photo of cat")[None]
    batch = sampling.Batch(prompts, (0,), 8)
    run = sampling.sample(model, batch, steps=3)
    torch.testing.assert_close(sampling.predictions_on(model, batch, run), run.predictions)


def test_metrics_agree_with_scikit_image(pictures: torch.Tensor) -> None:
    one, other = pictures[:2] / 2 + 0.5, pictures[2:4] / 2 + 0.5
    decibels = metrics.psnr(metrics.squared_error(one, other))
    similarity = metrics.ssim(one, other)
    for row in range(2):
        a, b = one[row].permute(1, 2, 0).numpy(), other[row].permute(1, 2, 0).numpy()
        assert float(decibels[row]) == pytest.approx(
            peak_signal_noise_ratio(a, b, data_range=1.0), abs=1e-3
        )
        expected = structural_similarity(a, b, channel_axis=2, data_range=1.0)
        assert float(similarity[row]) == pytest.approx(expected, abs=1e-4)


def test_feature_distance_grows_with_the_difference(
    model: ModelPatcher, pictures: torch.Tensor
) -> None:
    features = metrics.Features(model, text.encode(text.encoder(), "")[None])
    shown = pictures[:2] / 2 + 0.5
    noise = torch.rand(shown.shape, generator=torch.Generator().manual_seed(0)) - 0.5
    maps = features.of(shown)
    assert len(maps) == len(unet.LEVELS)
    little, much = (
        metrics.feature_distance(features.of((shown + share * noise).clamp(0, 1)), maps).mean()
        for share in (0.05, 0.5)
    )
    assert 0 < float(little) < float(much)
    assert float(metrics.feature_distance(maps, maps).max()) == pytest.approx(0, abs=1e-9)


def test_kernel_distance_tells_distributions_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 200, 16, generator=generator)
    same, other = metrics.kernel_distance(x, y), metrics.kernel_distance(x + 1, y)
    assert abs(same) < 0.1 < other


def test_a_report_reads_back_what_it_wrote(tmp_path: Path) -> None:
    place = tmp_path / "results.json"
    assert Report.read(place) == Report()
    report = Report(sigmas=[14.5, 0.03], pictures=2)
    measured = report.of("ours", "ours")
    measured.squared_error = [0.01, 0.0001]
    measured.seconds, measured.plain_seconds = [1.0, 2.0], [2.0, 3.0]
    report.write(place)
    again = Report.read(place)
    assert again == report
    assert again.of("ours", "ours").psnr == pytest.approx(30.0)
    assert again.of("ours", "ours").speedup == pytest.approx(1.75)


@pytest.mark.parametrize("shape", [UNetShape(32, 32), FluxShape(1, 1, 1)])
def test_a_stopped_training_ends_with_the_weights_of_one_that_was_not(
    shape: Shape, tmp_path: Path
) -> None:
    recipe = Recipe((Stage(8, 2, 2), Stage(16, 2, 2)), warm_up=1)
    quiet = Console(quiet=True)
    ends = []
    for name, stops in (("whole", (None,)), ("stopped", (3, None))):
        run = train.Run(recipe, tmp_path / name, torch.device("cpu"), shape, pictures=8)
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
    for name, weight in ends[0].average.items():
        torch.testing.assert_close(ends[1].average[name], weight)


@pytest.mark.parametrize("kind", places.WEIGHTS)
def test_every_variant_that_is_measured_can_be_made(kind: str) -> None:
    plain = weights.load(places.WEIGHTS[kind])
    found = variants(kind)
    assert len({variant.name for variant in found}) == len(found)
    for variant in found:
        assert variant.patch(plain) is not plain
