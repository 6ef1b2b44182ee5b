"""What the log of the group size and averaged values do to attention on fewer keys."""

from __future__ import annotations

import pytest

from benchmarks.speed import correction
from benchmarks.speed.results import Correction

SIDE = 16
PROMPT_TOKENS = 32


def measured(sharpness: float, prompt_tokens: int, noise: float = 0.1) -> dict[str, Correction]:
    found = correction.measure(noise, sharpness, prompt_tokens, SIDE, ("astronaut", "coffee"))
    return {one.reduction: one for one in found}


def test_with_even_weights_corrected_merging_is_exact() -> None:
    """Then whole attention is the mean of all values: the mean of means, by their sizes."""
    one = measured(sharpness=0.0, prompt_tokens=PROMPT_TOKENS)["merge 0.5, values averaged"]
    assert one.corrected < 1e-6 < 1e-3 < one.without
    assert one.sharing == pytest.approx(SIDE**2 + PROMPT_TOKENS, rel=1e-3)


def test_without_a_prompt_equal_sizes_need_no_correction() -> None:
    alone = measured(sharpness=1.0, prompt_tokens=0)
    for name in ("downsample ×2, values chosen", "downsample ×2, values averaged"):
        assert alone[name].corrected == pytest.approx(alone[name].without, rel=1e-3)


@pytest.mark.parametrize("sharpness", correction.SHARPNESS)
def test_the_correction_as_shipped_never_costs_much_and_helps_where_attention_is_diffuse(
    sharpness: float,
) -> None:
    """Token Downsample chooses values by default, Token Merge averages them."""
    found = measured(sharpness, PROMPT_TOKENS)
    for name in ("downsample ×2, values chosen", "merge 0.5, values averaged"):
        assert found[name].corrected < 1.01 * found[name].without
        if found[name].sharing > 3 / 4 * (SIDE**2 + PROMPT_TOKENS):
            assert found[name].corrected < 0.75 * found[name].without


def test_sharper_attention_shares_its_weight_among_fewer_keys() -> None:
    sharing = [
        next(iter(measured(sharpness, PROMPT_TOKENS).values())).sharing
        for sharpness in correction.SHARPNESS
    ]
    assert sharing == sorted(sharing, reverse=True)
