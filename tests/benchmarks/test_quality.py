"""What is measured of pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from comfy.model_patcher import ModelPatcher

from benchmarks.quality import metrics, sampling, yardsticks
from benchmarks.quality.regimes import STANDARD, Regime
from benchmarks.quality.report import Report
from benchmarks.quality.variants import list_variants
from benchmarks.trained import places, text, weights

TWO_STEPS = Regime("euler", "normal", 2)


@pytest.fixture(scope="module")
def model() -> ModelPatcher:
    return weights.load()


def test_the_same_seed_gives_the_same_picture_whatever_is_beside_it(model: ModelPatcher) -> None:
    prompts = torch.stack([text.encode(text.build_encoder(), "a red circle on grass")] * 2)
    pair = sampling.Batch(prompts, prompts[:1], (7, 8), sampling.square(8))
    both = sampling.sample(model, pair, TWO_STEPS)
    second = sampling.Batch(prompts[:1], prompts[:1], (8,), sampling.square(8))
    alone = sampling.sample(model, second, TWO_STEPS)
    torch.testing.assert_close(alone[0], both[1], atol=1e-3, rtol=1e-3)
    assert not torch.allclose(both[0], both[1], atol=1e-2)


def test_flicker_sees_only_what_changes_from_frame_to_frame() -> None:
    clips = torch.rand((2, 3, 4, 8, 8), generator=torch.Generator().manual_seed(0))
    still = clips + 0.1
    assert float(metrics.flicker(still, clips).max()) == pytest.approx(0, abs=1e-9)
    one_frame = clips.clone()
    one_frame[1, :, 1] += 0.3  # changes two of the three differences
    torch.testing.assert_close(
        metrics.flicker(one_frame, clips), torch.tensor([0.0, 2 / 3 * 0.3**2])
    )


def test_a_report_reads_back_what_it_wrote(tmp_path: Path) -> None:
    place = tmp_path / "results.json"
    assert Report.read(place) == Report()
    report = Report(thresholds={"(70 %)": 0.2})
    measured = report.find_or_add("ours", "ours")
    measured.squared_error = [0.01, 0.0001]
    report.write(place)
    again = Report.read(place)
    assert again == report
    assert again.find_or_add("ours", "ours").decibels == pytest.approx([20.0, 40.0])


@pytest.mark.parametrize("model", places.WEIGHTS)
def test_every_variant_that_is_measured_can_be_made(model: str) -> None:
    unpatched = weights.load(places.WEIGHTS[places.find_kind(model)])
    found = [*list_variants(model, STANDARD[model][0]), *yardsticks.list_caches({"(70 %)": 0.2})]
    assert len({variant.name for variant in found}) == len(found)
    for variant in found:
        assert variant.patch(unpatched) is not unpatched
