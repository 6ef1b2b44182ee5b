"""Local windows with queries and keys of 8 bits are local windows, but for the rounding."""

from __future__ import annotations

import pytest
import torch
from support.layers import LayerTokens, plan_layer
from token_merge.tome_core import DownsampleSettings, Draws, MergeSettings, Stream, TokenGrid
from token_merge.tome_core.windows import attend_densely, int8

CPU = torch.device("cpu")


def make_plan(settings, images=1):
    metric = torch.randn(images, 20 * 24, 8)
    stream = Stream(TokenGrid(20, 24), before=7, after=3)
    draws = Draws((7,), CPU, 3)
    plan = plan_layer(settings, LayerTokens(stream, lambda: metric, draws, local_window=8))
    return plan, stream.length


def test_a_number_is_rounded_by_half_a_step_at_most_and_zeros_stay_zeros():
    x = torch.randn(5, 7, 40) * torch.logspace(-20, 4, 7)[:, None]
    x[2, 3] = 0
    numbers, step = int8.round_rows(x)
    assert numbers.dtype == torch.int8 and numbers.abs().amax() == int8.LEVELS
    assert ((numbers * step - x).abs() <= step * (0.5 + 1e-4)).all()
    assert not numbers[2, 3].any()


@pytest.mark.parametrize("common", [0, 30], ids=["no common part", "a large common part"])
@pytest.mark.parametrize("settings", [DownsampleSettings(), MergeSettings(ratio=0.5)], ids=str)
def test_the_error_is_that_of_rounding_whatever_all_keys_have_in_common(settings, common):
    """A score is then off by 0.01, about as in SageAttention. With merged queries, too."""
    plan, length = make_plan(settings)
    q = torch.randn(1, 4, length, 64)
    k, v = torch.randn(2, 1, 2, length, 64)
    k = k + common * torch.randn(1, 2, 1, 64)
    exact = attend_densely(plan, *(x.double() for x in (q, k, v)), None, 0.125)
    found = int8.attend_in_int8(plan, q, k, v, None, 0.125)
    error = (found - exact).norm() / exact.norm()
    assert 1e-3 < error < 0.02
