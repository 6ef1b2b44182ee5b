"""Plans live on the device of the tokens: nothing is made elsewhere and copied there."""

import pytest
import torch
from support.layers import LayerTokens, plan_layer
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    MergeSettings,
    Stream,
    TokenGrid,
    attend,
    draw_groups,
)
from token_merge.tome_core.downsampling.settings import METHODS
from token_merge.tome_core.merging.settings import MATCHINGS

META = torch.device("meta")
SETTINGS = [
    *(MergeSettings(matching=matching) for matching in MATCHINGS),
    MergeSettings(random_destinations=False),
    *(DownsampleSettings(method=method) for method in METHODS),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("stream", [Stream(TokenGrid(8, 12)), Stream(TokenGrid(8, 12), 5, 3)])
def test_a_plan_is_made_on_the_device_of_its_tokens(settings, stream):
    """An operation on tensors of two devices raises."""
    x = torch.empty(2, stream.length, 8, device=META)
    layer = LayerTokens(stream, lambda: stream.take_picture(x), Draws((0,), META))
    plan = plan_layer(settings, layer)
    groups = draw_groups(stream.length, plan.groups, Draws((0,), META))
    tensors = [plan.chosen, plan.sizes, plan.merge(x), plan.choose(x), groups.split(x)]
    if isinstance(settings, MergeSettings):
        tensors.append(plan.unmerge(plan.merge(x)))
    assert all(each is None or each.device == META for each in tensors)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_plan_has_the_same_types_whatever_the_type_of_its_tokens(settings, dtype):
    """And what it reduces keeps its own type."""
    stream = Stream(TokenGrid(8, 12))
    x = torch.empty(2, stream.length, 8, dtype=dtype, device=META)
    plan = plan_layer(settings, LayerTokens(stream, lambda: x, Draws((0,), META)))
    assert plan.chosen.dtype == torch.int64
    assert plan.sizes is None or plan.sizes.dtype == torch.int64
    reduced = [plan.merge(x), plan.choose(x)]
    if isinstance(settings, MergeSettings):
        reduced.append(plan.unmerge(plan.merge(x)))
    assert {each.dtype for each in reduced} == {dtype}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_local_windows_keep_the_type_of_the_tokens(dtype):
    stream = Stream(TokenGrid(8, 12), 5, 3)
    q, k, v = torch.empty(3, 2, 4, stream.length, 8, dtype=dtype, device=META)
    layer = LayerTokens(stream, lambda: q, Draws((0,), META), local_window=8)
    plan = plan_layer(DownsampleSettings(), layer)
    assert attend(plan, q, k, v, None, 0.1).dtype == dtype


@pytest.mark.parametrize("stream", [Stream(TokenGrid(8, 12)), Stream(TokenGrid(8, 12), 5, 3)])
def test_local_windows_are_made_on_the_device_of_the_tokens(stream):
    q, k, v = torch.empty(3, 2, 4, stream.length, 8, device=META)
    layer = LayerTokens(stream, lambda: q, Draws((0,), META), local_window=8)
    plan = plan_layer(DownsampleSettings(), layer)
    mask = torch.empty(1, 1, stream.length, stream.length, device=META)
    assert attend(plan, q, k, v, mask, 0.1).device == META
