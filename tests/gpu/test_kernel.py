"""Our kernel on a real GPU, compiled."""

from __future__ import annotations

import pytest
import torch
from support.layers import LayerTokens, kernels_of_windows, plan_layer
from token_merge.nodes.kernels.usable import load_kernel, why_unusable
from token_merge.tome_core import DownsampleSettings, Draws, MergeSettings, Stream, TokenGrid
from token_merge.tome_core.windows import attend_densely
from torch.nn.functional import scaled_dot_product_attention


@pytest.fixture(scope="module")
def gpu():
    device = torch.device("cuda", 0)
    if reason := why_unusable("windows", device, torch.float16, 64, False):
        pytest.skip(reason)
    return device


def make_plan(grid, device, settings, metric):
    draws, chosen = Draws((7,), device, 3), metric.to(device)
    layer = LayerTokens(Stream(grid, 37, 5), lambda: chosen, draws, local_window=12)
    with kernels_of_windows():
        return plan_layer(settings, layer)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("channels", [16, 40, 64, 80, 96, 128])
@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("precision", ["exact", "int8"])
def test_it_runs_with_all_that_it_takes(channels, dtype, merges, precision, gpu):
    assert why_unusable("windows", gpu, dtype, channels, merges, precision) == ""


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("channels", [40, 64, 128])
@pytest.mark.parametrize("grid", [TokenGrid(40, 50), TokenGrid(12, 14, 6)], ids=str)
@pytest.mark.parametrize("settings", [DownsampleSettings(), MergeSettings()], ids=str)
def test_windows_are_those_of_the_reference(grid, channels, dtype, settings, gpu):
    # In double precision both devices merge the same queries.
    metric = torch.randn(2, grid.tokens, 8, dtype=torch.float64)
    on_gpu, on_cpu = (
        make_plan(grid, device, settings, metric) for device in (gpu, torch.device("cpu"))
    )
    size = (3, 2, 3, on_gpu.geometry.stream.length, channels)
    q, k, v = torch.randn(size, device=gpu).to(dtype)
    found = load_kernel("windows").attend(on_gpu, q, k, v, None, channels**-0.5)
    exact = [x.cpu().double() for x in (q, k, v)]
    expected = attend_densely(on_cpu, *exact, None, channels**-0.5)
    error = (found.cpu().double() - expected).norm() / expected.norm()
    assert error < torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("channels", [64, 128])
def test_keys_weigh_as_many_tokens_as_they_stand_for(channels, dtype, gpu):
    q = torch.randn(2, 4, 500, channels, device=gpu).to(dtype)
    k, v = torch.randn(2, 2, 4, 300, channels, device=gpu).to(dtype)
    sizes = torch.randint(1, 9, (2, 300), device=gpu)
    assert why_unusable("weighed_keys", gpu, dtype, channels) == ""
    found = load_kernel("weighed_keys").attend_weighed(q, k, v, sizes, 0.1)
    exact = [x.double() for x in (q, k, v)]
    bias = sizes.log()[:, None, None].double().expand(-1, 4, 500, -1)
    expected = scaled_dot_product_attention(*exact, bias, scale=0.1)
    assert (found.double() - expected).norm() / expected.norm() < torch.finfo(dtype).eps
