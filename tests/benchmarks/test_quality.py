"""The metrics of pictures and what is measured by them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from comfy.model_patcher import ModelPatcher
from skimage.metrics import structural_similarity

from benchmarks.quality import metrics, sampling, yardsticks
from benchmarks.quality.regimes import DEFAULT
from benchmarks.quality.report import Report, VariantReport
from benchmarks.quality.variants import list_variants
from benchmarks.trained import places, text, unet, weights


@pytest.fixture(scope="module")
def model() -> ModelPatcher:
    return weights.load()


def test_the_same_seed_gives_the_same_picture_whatever_is_beside_it(model: ModelPatcher) -> None:
    prompts = torch.stack([text.encode(text.build_encoder(), "a red circle on grass")] * 2)
    pair = sampling.Batch(prompts, prompts[:1], (7, 8), sampling.square(8))
    both = sampling.sample(model, pair, DEFAULT.with_steps(2))
    second = sampling.Batch(prompts[:1], prompts[:1], (8,), sampling.square(8))
    alone = sampling.sample(model, second, DEFAULT.with_steps(2))
    torch.testing.assert_close(alone.latent[0], both.latent[1], atol=1e-4, rtol=1e-4)
    assert not torch.allclose(both.latent[0], both.latent[1], atol=1e-2)


def test_predictions_on_plains_states_are_plains_own(model: ModelPatcher) -> None:
    prompts = text.encode(text.build_encoder(), "a photo of cat")[None]
    batch = sampling.Batch(prompts, prompts, (0,), sampling.square(8))
    run = sampling.sample(model, batch, DEFAULT.with_steps(3))
    torch.testing.assert_close(sampling.predictions_on(model, batch, run), run.predictions)


def test_pictures_are_compared_channel_by_channel_in_their_whole_range(
    pictures: torch.Tensor,
) -> None:
    one, other = pictures[:2] / 2 + 0.5, pictures[2:4] / 2 + 0.5
    similarity = metrics.ssim(one, other)
    for row in range(2):
        a, b = one[row].permute(1, 2, 0).numpy(), other[row].permute(1, 2, 0).numpy()
        expected = structural_similarity(a, b, channel_axis=2, data_range=1.0)
        assert float(similarity[row]) == pytest.approx(expected, abs=1e-4)


def test_decibels_of_kept_errors_are_those_of_the_pictures(pictures: torch.Tensor) -> None:
    one, other = pictures[:2] / 2 + 0.5, pictures[2:4] / 2 + 0.5
    kept = VariantReport("ours", "ours", squared_error=metrics.squared_error(one, other).tolist())
    assert kept.psnr == pytest.approx(float(metrics.psnr(one, other).mean()))


def test_feature_distance_grows_with_the_difference(
    model: ModelPatcher, pictures: torch.Tensor
) -> None:
    features = metrics.Features(model, text.encode(text.build_encoder(), "")[None])
    shown = pictures[:2] / 2 + 0.5
    noise = torch.rand(shown.shape, generator=torch.Generator().manual_seed(0)) - 0.5
    maps = features.compute(shown)
    assert len(maps) == len(unet.LEVELS)
    little, much = (
        metrics.feature_distance(features.compute((shown + share * noise).clamp(0, 1)), maps).mean()
        for share in (0.05, 0.5)
    )
    assert 0 < float(little) < float(much)
    assert float(metrics.feature_distance(maps, maps).max()) == pytest.approx(0, abs=1e-9)


def test_flicker_sees_only_what_changes_from_frame_to_frame() -> None:
    clips = torch.rand((2, 3, 4, 8, 8), generator=torch.Generator().manual_seed(0))
    still = clips + 0.1
    assert float(metrics.flicker(still, clips).max()) == pytest.approx(0, abs=1e-9)
    one_frame = clips.clone()
    one_frame[1, :, 1] += 0.3  # changes two of the three differences
    torch.testing.assert_close(
        metrics.flicker(one_frame, clips), torch.tensor([0.0, 2 / 3 * 0.3**2])
    )


def test_kernel_distance_tells_distributions_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 200, 16, generator=generator)
    same, other = metrics.kernel_distance(x, y), metrics.kernel_distance(x + 1, y)
    assert abs(same) < 0.1 < other


def test_a_report_reads_back_what_it_wrote(tmp_path: Path) -> None:
    place = tmp_path / "results.json"
    assert Report.read(place) == Report()
    report = Report(sigmas=[14.5, 0.03], pictures=2)
    measured = report.find_or_add("ours", "ours")
    measured.squared_error = [0.01, 0.0001]
    measured.seconds, measured.plain_seconds = [1.0, 2.0], [2.0, 3.0]
    report.write(place)
    again = Report.read(place)
    assert again == report
    assert again.find_or_add("ours", "ours").psnr == pytest.approx(30.0)
    assert again.find_or_add("ours", "ours").speedup == pytest.approx(1.75)


@pytest.mark.parametrize("model", places.WEIGHTS)
def test_every_variant_that_is_measured_can_be_made(model: str) -> None:
    plain = weights.load(places.WEIGHTS[places.find_kind(model)])
    found = [*list_variants(model, DEFAULT), *yardsticks.list_caches({"(70 %)": 0.2})]
    assert len({variant.name for variant in found}) == len(found)
    for variant in found:
        assert variant.patch(plain) is not plain
