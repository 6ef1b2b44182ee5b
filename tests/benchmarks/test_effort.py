"""Calls of the model and query-key pairs are counted where they happen, not read from settings."""

from __future__ import annotations

import pytest
import torch
from comfy.model_patcher import ModelPatcher

from benchmarks.quality import sampling, yardsticks
from benchmarks.quality.effort import Effort, EffortWatch
from benchmarks.quality.patches import Patch, downsample, merge, windows
from benchmarks.quality.regimes import Regime
from benchmarks.quality.variants import PEERS
from benchmarks.trained import places, text, weights
from benchmarks.trained.flux import FluxShape

PROMPT = 77
TOKENS = 16
REGIME = Regime("euler", "simple", 2)


def measure(
    model: ModelPatcher,
    patch: Patch,
    regime: Regime = REGIME,
    rows: int = 1,
    tokens: int = TOKENS,
) -> Effort:
    clip = text.build_encoder()
    prompts = torch.stack([text.encode(clip, "a cat")] * rows)
    batch = sampling.Batch(prompts, prompts[:1], tuple(range(rows)), sampling.square(tokens))
    watch = EffortWatch()
    sampling.sample(watch.attach(patch(model)), batch, regime)
    return watch.effort


@pytest.fixture(scope="module")
def flux() -> ModelPatcher:
    return weights.load(places.WEIGHTS["flux"])


@pytest.fixture(scope="module")
def unet() -> ModelPatcher:
    return weights.load()


UNPATCHED = yardsticks.UNPATCHED.patch
BLOCKS = FluxShape().double + FluxShape().single
PICTURE = TOKENS**2


def test_an_unpatched_transformer_compares_every_token_with_every_token(flux: ModelPatcher) -> None:
    assert measure(flux, UNPATCHED) == Effort(2, 2 * BLOCKS * (PROMPT + PICTURE) ** 2)


def test_comfyuis_hypertile_reads_a_fourth_of_the_pairs_of_the_finest_layers(
    unet: ModelPatcher,
) -> None:
    """It makes tiles of 32 x 32 tokens, of 64 x 64 as in a picture of SD 1.5 of 512 x 512."""
    sides, once = (64, 32, 16), Regime("euler", "simple", 1)
    finest, middle, coarsest = (side**4 for side in sides)
    found = measure(unet, PEERS["ComfyUI's HyperTile"], once, tokens=64)
    assert found.pairs == 3 * finest // 4 + 3 * middle + 4 * coarsest


def test_rows_and_guidance_count_as_often_as_they_are_computed(flux: ModelPatcher) -> None:
    one = measure(flux, UNPATCHED)
    two = measure(flux, UNPATCHED, Regime("euler", "simple", 2, 5.0), rows=3)
    assert two == Effort(6 * one.rows, 6 * one.pairs)


@pytest.mark.parametrize("method", ["stratified", "interleaved"])
def test_downsampled_keys_are_counted_in_groups_too(flux: ModelPatcher, method: str) -> None:
    asked = (PROMPT + PICTURE) * (PROMPT + PICTURE // 4)
    found = measure(flux, downsample(2, method=method))
    # Groups of queries are not all of one size, and the prompt's queries are in one of them.
    assert found.pairs == pytest.approx(2 * BLOCKS * asked, rel=0.02)


def test_a_unets_cross_attention_is_not_counted(unet: ModelPatcher) -> None:
    """On each of three levels it has one block down and two up, and one more in the middle."""
    pairs = 3 * PICTURE**2 + 3 * (PICTURE // 4) ** 2 + 4 * (PICTURE // 16) ** 2
    assert measure(unet, UNPATCHED) == Effort(2, 2 * pairs)


@pytest.mark.parametrize("kind", ["unet", "flux"])
def test_being_watched_changes_no_picture(kind: str) -> None:
    model = merge()(weights.load(places.WEIGHTS[kind]))
    prompts = text.encode(text.build_encoder(), "a cat")[None]
    batch = sampling.Batch(prompts, prompts, (0,), sampling.square(TOKENS))
    watched = sampling.sample(EffortWatch().attach(model), batch, REGIME)
    assert torch.equal(watched, sampling.sample(model, batch, REGIME))


def test_pairs_of_local_windows_are_those_that_the_report_tells(flux: ModelPatcher) -> None:
    tokens, length = TOKENS**2, TOKENS**2 + PROMPT
    near, in_line, elsewhere, of_prompt = 64, 2 * 32, 8, 64
    of_picture = near + in_line + elsewhere
    keys = (tokens * of_picture + PROMPT * of_prompt) / length + PROMPT
    expected = keys / length
    unpatched, ours = (
        measure(flux, patch) for patch in (UNPATCHED, windows(2, exact_early_steps=False))
    )
    assert ours.pairs / unpatched.pairs == pytest.approx(expected, rel=0.01)
