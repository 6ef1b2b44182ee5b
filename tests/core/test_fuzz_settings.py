"""Settings from any value: made, or refused by name."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from support.core_cases import grids
from support.fuzzing import SOAK, fuzzed
from token_merge.tome_core import DownsampleSettings, MergeSettings, TokenGrid
from token_merge.tome_core.downsampling.settings import METHODS
from token_merge.tome_core.merging.settings import MATCHINGS, TARGET_CHOICES
from token_merge.tome_core.schedule import PercentRange

NUMBERS = st.one_of(
    st.integers(),
    st.integers(-1, 10),
    st.floats(),
    st.floats(-0.5, 9.0),
    st.sampled_from([0, 1, 0.5, 0.9, 2**64, -(2**63), 1e308, -0.0]),
)
OTHERS = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.complex_numbers(),
    st.lists(st.integers(), max_size=2),
    st.sampled_from([*MATCHINGS, *METHODS, *TARGET_CHOICES, "auto"]),
    st.sampled_from([Decimal("0.5"), Fraction(1, 2), torch.tensor(0.5), torch.ones(2), int, {}]),
)
VALUES = st.one_of(NUMBERS, OTHERS)
FLAGS = ("random_destinations", "merge_cross_attention", "merge_mlp")
STRIDES = ("stride_x", "stride_y")
MERGE = ("ratio", "max_downsample", "target", *STRIDES, *FLAGS, "matching")
DOWNSAMPLE = ("factor", "factor_level_2", "method", "local_window", "temporal_factor")
SHARED = ("max_tokens", "proportional_attention", "seed")
INPUTS = {
    MergeSettings: (*MERGE, *SHARED),
    DownsampleSettings: (*DOWNSAMPLE, *SHARED),
    PercentRange: ("start", "end"),
}


USUAL = {
    **{name: st.sampled_from([True, False]) for name in (*FLAGS, "proportional_attention")},
    **{name: st.integers(1, 8) for name in (*STRIDES, "max_tokens", "seed")},
    **{name: st.floats(1.0, 8.0) for name in ("factor", "factor_level_2", "temporal_factor")},
    "ratio": st.floats(0.0, 0.9),
    "max_downsample": st.sampled_from([None, 1, 2, 4, 8]),
    "target": st.sampled_from(TARGET_CHOICES),
    "matching": st.sampled_from(MATCHINGS),
    "method": st.sampled_from(METHODS),
    "local_window": st.one_of(st.none(), st.integers(0, 64)),
    "start": st.floats(0.0, 0.5),
    "end": st.floats(0.6, 1.0),
}


@st.composite
def choices(draw):
    kind = draw(st.sampled_from([*INPUTS]))
    names = draw(st.lists(st.sampled_from(INPUTS[kind]), min_size=1, max_size=4, unique=True))
    odd = draw(st.sets(st.sampled_from(names), max_size=2))
    return kind, {name: draw(VALUES if name in odd else USUAL[name]) for name in names}


@fuzzed(short=60, share=0.14)
@given(choices())
def test_any_value_is_taken_or_refused_by_name(chosen):
    kind, values = chosen
    try:
        made = kind(**values)
    except ValueError as error:
        refusal = str(error)
    else:
        assert hash(made) == hash(kind(**values))
        assert {name: getattr(made, name) for name in values} == values
        return SOAK.count("settings", "taken")
    named = [re.search(rf"\b{name}(_percent)?,? (which )?is ", refusal) for name in values]
    assert any(named)
    assert ", expected " in refusal
    return SOAK.count("settings", "refused")


@fuzzed(short=20, share=0.03)
@given(*[st.integers(-3, 3)] * 3)
def test_a_grid_without_tokens_is_refused(height, width, frames):
    if min(height, width, frames) >= 1:
        assert TokenGrid(height, width, frames).tokens == height * width * frames
        return SOAK.count("grids", "made")
    with pytest.raises(ValueError, match=r"(height|width|frames) is -?\d, expected at least 1"):
        TokenGrid(height, width, frames)
    return SOAK.count("grids", "refused")


@fuzzed(short=20, share=0.03)
@given(grids(), st.floats(1.0, 8.0), st.floats(1.0, 8.0))
def test_a_smaller_grid_has_tokens_and_no_longer_sides(grid, factor, temporal_factor):
    smaller = grid.downsample(factor, temporal_factor)
    assert all(1 <= side <= whole for side, whole in zip(smaller.sides, grid.sides, strict=True))
    SOAK.count("grids", "downsampled")
