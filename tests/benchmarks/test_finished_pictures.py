"""What the measured curves taught, on finished pictures of the trained models."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from token_merge.nodes.hooks.run.state import ModelCall

from benchmarks import ours
from benchmarks.quality import batches, metrics, sampling
from benchmarks.quality.regimes import Regime
from benchmarks.trained import places, weights

STEPS = 6
TOKENS = 24
DOWNSAMPLE, MERGE = "TokenDownsampleAdvanced", "TokenMergeAdvanced"


@cache
def pictures(kind: str, steps: int, node: str | None, **inputs: Any) -> torch.Tensor:
    """(3, 3, 192, 192), the same seeds whatever the node."""
    model = _model(kind)
    (batch,) = batches.make_batches(kind, 3, TOKENS)
    regime = Regime("euler", "normal", steps)
    patched = ours.apply_in_all_steps(node, model, **inputs) if node else model
    return sampling.pictures(model, sampling.sample(patched, batch, regime))


@cache
def _model(kind: str) -> Any:
    return weights.load(places.WEIGHTS[kind])


def error(node: str, *, kind: str = "unet", steps: int = STEPS, **inputs: Any) -> float:
    """Mean squared, against the unpatched model."""
    unpatched = pictures(kind, steps, None)
    ours = pictures(kind, steps, node, **inputs)
    return float(metrics.squared_error(ours, unpatched).mean())


def drawn_error(method: str = "stratified", **inputs: Any) -> float:
    """Of Token Downsample's drawn keys, the mean over three seeds: one differs by half."""
    errors = [error(DOWNSAMPLE, method=method, seed=seed, **inputs) for seed in range(3)]
    return sum(errors) / 3


def test_drawn_keys_err_half_as_much_as_a_regular_grid_or_less() -> None:
    windowless = {"kind": "flux", "factor": 2.0, "local_window": "off"}
    regular = error(DOWNSAMPLE, method="nearest-exact", **windowless)
    assert 0 < drawn_error(**windowless) < regular / 2


def test_going_round_the_cells_halves_the_error_of_drawing_anew_in_each_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_flux = {"kind": "flux", "steps": 8, "factor": 2.0}
    going_round = error(DOWNSAMPLE, **of_flux)
    make_draws = ModelCall.make_draws
    monkeypatch.setattr(ModelCall, "make_draws", lambda *args: make_draws(*args).per_step)
    anew = error(DOWNSAMPLE, **of_flux, seed=0)  # named, so that it is not kept
    assert 0 < going_round < anew / 2


def test_interleaved_keys_err_less_than_those_that_all_queries_share() -> None:
    assert 0 < drawn_error("interleaved", factor=2.0) < drawn_error(factor=2.0)


def test_weighing_merged_keys_by_their_size_halves_the_error_or_more() -> None:
    tome = {"ratio": 0.5, "target": "queries, keys and values"}
    unsized = error(MERGE, proportional_attention=False, **tome)
    assert 0 < error(MERGE, **tome) < unsized / 2


def test_downsampled_keys_err_less_than_merged_ones() -> None:
    merged = error(MERGE, ratio=0.5, target="queries, keys and values")
    assert 0 < error(MERGE) < merged / 2


def test_drawn_keys_err_less_in_a_transformer_too() -> None:
    drawn = error(DOWNSAMPLE, kind="flux", factor=2.0, method="stratified", local_window="off")
    assert 0 < drawn < error(DOWNSAMPLE, kind="flux", factor=2.0, method="nearest-exact") / 2


def test_a_transformer_errs_less_where_its_fewer_keys_weigh_as_much_as_all_did() -> None:
    sized, unsized = (
        error(
            DOWNSAMPLE, kind="flux", factor=2.0, local_window="off", proportional_attention=weighed
        )
        for weighed in (True, False)
    )
    assert 0 < sized < unsized


def test_exact_near_keys_reduce_a_transformers_error_to_a_fourth_or_less() -> None:
    windowless = error(DOWNSAMPLE, kind="flux", factor=2.0, local_window="off")
    assert 0 < error(DOWNSAMPLE, kind="flux", factor=2.0) < windowless / 4


def test_queries_that_share_far_keys_alone_err_a_tenth_as_much_or_less() -> None:
    """With 24 x 24 tokens the box is half as long as the picture."""
    windowless = error(MERGE, kind="flux", local_window="off")
    assert 0 < error(MERGE, kind="flux") < windowless / 10
