"""What our nodes are held against: fewer steps and EasyCache."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from comfy.model_patcher import ModelPatcher

from benchmarks.quality import cache_thresholds, metrics, sampling, yardsticks
from benchmarks.quality.batches import ROWS, make_batches
from benchmarks.quality.measure import make
from benchmarks.quality.patches import PictureVariant, downsample
from benchmarks.quality.regimes import STANDARD, Regime
from benchmarks.quality.sampling import Batch
from benchmarks.trained import places, weights

REGIME = Regime("euler", "simple", 8)


@pytest.fixture(scope="module")
def flux() -> ModelPatcher:
    return weights.load(places.WEIGHTS["flux"])


@pytest.fixture(scope="module")
def batches() -> list[Batch]:
    """Five pictures of 8 x 8 tokens."""
    return make_batches("unet", ROWS + 1, 8)


@pytest.mark.parametrize("regime", [each for kind in STANDARD.values() for each in kind])
def test_every_regime_has_fewer_steps_to_compare_with(regime: Regime) -> None:
    counts = [variant.steps for variant in yardsticks.list_fewer_steps(regime)]
    assert len(counts) >= 2 and max(counts) < regime.steps


def test_fewer_steps_cost_fewer_calls_and_part_from_the_original(
    flux: ModelPatcher, batches: list[Batch]
) -> None:
    unpatched, _ = make(flux, yardsticks.UNPATCHED, batches[:1], REGIME)
    errors = []
    for steps in (7, 4):
        variant = PictureVariant(
            f"unpatched, {steps} steps", "yardstick", downsample(1), steps=steps
        )
        pictures, effort = make(flux, variant, batches[:1], REGIME)
        assert effort.rows == ROWS * steps
        errors.append(float(metrics.squared_error(pictures, unpatched).mean()))
    assert 0 < errors[0] < errors[1]


def test_thresholds_of_easy_cache_leave_about_the_wanted_calls(flux: ModelPatcher) -> None:
    alone = make_batches("unet", 1, 12)
    found = cache_thresholds.find(flux, alone[0], REGIME)
    assert {*found} >= {"(85 %)", "(50 %)"}
    for variant in yardsticks.list_caches(found):
        wanted = float(re.search(r"\((\d+) %\)", variant.name)[1]) / 100
        calls = make(flux, variant, alone, REGIME)[1].rows / REGIME.steps
        assert calls < 1 and calls == pytest.approx(wanted, abs=0.13)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((4, 3, 2, 1), {70: 3, 50: 2}),
        ((8, 7, 6, 5, 4), {85: 7, 70: 6, 50: 4}),
        ((8, 7, 5), {85: 7, 70: 5}),  # 5 of 8 is nearer to 70 than to 50 %
        ((100, 99, 72), {85: 99, 70: 72}),
        ((40, 31, 24), {85: 31, 70: 24}),  # 31 of 40 is as near to 70, 24 to 50 %
        ((4, 4), {}),
    ],
)
def test_a_threshold_of_easy_cache_is_filed_under_the_nearest_share(
    rows: tuple[int, ...], expected: dict[int, int]
) -> None:
    def count(threshold: float) -> int:
        """One row of numbers after the other, up the ladder."""
        rung = cache_thresholds.LADDER.index(round(100 * threshold))
        return rows[len(rows) * rung // len(cache_thresholds.LADDER)]

    found = cache_thresholds.choose(count)
    assert {share: count(threshold) for share, threshold in found.items()} == expected


def test_easy_cache_leaves_the_samplers_own_latent_alone(
    flux: ModelPatcher, batches: list[Batch]
) -> None:
    """In single precision too, where a flow model hands it to the network as it is."""
    cached = PictureVariant("cached", "yardstick", yardsticks.cache(0.3))
    pictures, effort = make(flux, cached, batches[:1], REGIME)
    assert effort.rows < ROWS * REGIME.steps
    unpatched, _ = make(flux, yardsticks.UNPATCHED, batches[:1], REGIME)
    assert float(metrics.squared_error(pictures, unpatched).mean()) < 1e-3


def test_nodes_draw_with_the_number_of_the_batch(flux: ModelPatcher, batches: list[Batch]) -> None:
    seeds: list[int] = []

    def note(model: ModelPatcher, /, *, seed: int = 0) -> ModelPatcher:
        seeds.append(seed)
        return model

    pictures, _ = make(flux, PictureVariant("noting", "ours", note, steps=2), batches, REGIME)
    assert seeds == [0, 1] and len(pictures) == ROWS + 1


@pytest.mark.parametrize("inputs", [{"method": "stratified"}, {"method": "interleaved"}])
def test_another_seed_of_a_node_draws_other_tokens(
    inputs: dict[str, Any], flux: ModelPatcher, batches: list[Batch]
) -> None:
    patch = downsample(2, **inputs)
    made = [
        sampling.sample(patch(flux, seed=seed), batches[0], REGIME.with_steps(2)) for seed in (0, 1)
    ]
    assert not torch.allclose(*made, atol=1e-2)
