"""What our nodes are held against: fewer steps and EasyCache."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from comfy.model_patcher import ModelPatcher

from benchmarks.quality import cache_thresholds, metrics, sampling, yardsticks
from benchmarks.quality.bench import ROWS, Bench
from benchmarks.quality.pairs import Pairs
from benchmarks.quality.patches import PictureVariant, downsample
from benchmarks.quality.regimes import STANDARD, Regime
from benchmarks.trained import places, weights

REGIME = Regime("euler", "simple", 8)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Five pictures, so two batches, of 8 x 8 tokens, in single precision."""
    folder = tmp_path_factory.mktemp("kept")
    flux = weights.load(places.WEIGHTS["flux"])
    pairs = Pairs.make(ROWS + 1, 8, folder, held_out=8)
    return Bench(flux, flux, flux, pairs, REGIME, folder)


@pytest.mark.parametrize("regime", [each for kind in STANDARD.values() for each in kind])
def test_every_regime_has_fewer_steps_to_compare_with(regime: Regime) -> None:
    counts = [variant.steps for variant in yardsticks.list_steps(regime)]
    fewer = [count for count in counts if count is not None and count < regime.steps]
    assert len(fewer) >= 2
    assert (3 * regime.steps in counts) is not regime.draws_noise


def test_fewer_steps_cost_fewer_calls_and_part_from_plain(bench: Bench) -> None:
    plain = bench.make_plain()
    errors = []
    for steps in (7, 4):
        variant = PictureVariant(f"plain, {steps} steps", "yardstick", downsample(1), steps=steps)
        made = bench.make(variant, ROWS)
        assert made.per_picture()[0] == steps
        errors.append(float(metrics.squared_error(made.pictures, plain.pictures[:ROWS]).mean()))
    assert 0 < errors[0] < errors[1]


def test_thresholds_of_easy_cache_leave_about_the_wanted_calls(bench: Bench) -> None:
    (batch,) = bench.pairs.batches(1, 1)
    found = cache_thresholds.find(bench.model, batch, REGIME)
    assert {*found} >= {"(85 %)", "(50 %)"}
    for variant in yardsticks.list_caches(found):
        wanted = float(re.search(r"\((\d+) %\)", variant.name)[1]) / 100
        calls = bench.make(variant, 1).per_picture()[0] / REGIME.steps
        assert calls < 1 and calls == pytest.approx(wanted, abs=0.13)


def test_easy_cache_leaves_the_samplers_own_latent_alone(bench: Bench) -> None:
    """In single precision too, where a flow model hands it to the network as it is."""
    cached = PictureVariant("cached", "yardstick", yardsticks.cache(0.1))
    made = bench.make(cached, ROWS)
    assert made.per_picture()[0] < REGIME.steps
    plain = bench.make_plain(ROWS)
    assert float(metrics.psnr(made.pictures, plain.pictures).mean()) > 30


def test_nodes_draw_with_the_number_of_the_batch(bench: Bench) -> None:
    seeds: list[int] = []

    def note(model: ModelPatcher, /, *, seed: int = 0) -> ModelPatcher:
        seeds.append(seed)
        return model

    bench.make(PictureVariant("noting", "ours", note, steps=2), ROWS + 1)
    assert seeds == [0, 1]


@pytest.mark.parametrize("inputs", [{"method": "stratified"}, {"method": "interleaved"}])
def test_another_seed_of_a_node_draws_other_tokens(bench: Bench, inputs: dict[str, Any]) -> None:
    batch = bench.pairs.batches(ROWS)[0]
    patch = downsample(2, **inputs)
    made = [
        sampling.sample(patch(bench.model, seed=seed), batch, REGIME.with_steps(2)).latent
        for seed in (0, 1)
    ]
    assert not torch.allclose(*made, atol=1e-2)


def test_what_was_made_is_kept_with_its_effort(bench: Bench) -> None:
    variant = PictureVariant("kept", "ours", downsample(2), steps=2)
    first = bench.make(variant, ROWS)
    again = bench.make(variant, ROWS)
    assert torch.equal(first.pictures, again.pictures) and first.effort == again.effort
    assert first.effort.rows == 2 * ROWS
