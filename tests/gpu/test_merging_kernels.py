"""Our kernels that merge tokens on a real GPU, compiled."""

from __future__ import annotations

import pytest
import torch
from token_merge.nodes.kernels.usable import load_kernel, why_unusable
from token_merge.tome_core import Draws, TokenGrid, choose_strided, match_local
from token_merge.tome_core.windows.queries import Strips, merge_queries

DTYPES = [torch.float16, torch.bfloat16]


@pytest.fixture(scope="module")
def gpu():
    device = torch.device("cuda", 0)
    if reason := why_unusable("merging", device):
        pytest.skip(reason)
    return device


def choose_dst(grid, device):
    return choose_strided(grid, 2, 2, Draws((7,), device), device)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_they_run_with_all_that_they_take(dtype, gpu):
    assert why_unusable("merging", gpu, dtype) == ""


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("channels", [40, 320, 1280])
@pytest.mark.parametrize("grid", [TokenGrid(33, 40), TokenGrid(128, 128), TokenGrid(256, 256)])
def test_the_same_tokens_are_merged_as_on_the_cpu(grid, channels, dtype, gpu):
    if grid.tokens * channels > 2**23:
        pytest.skip("a processor takes long")
    metric = torch.randn(2, grid.tokens, channels, device=gpu).to(dtype)
    merged = grid.tokens // 3
    found = match_local(metric, grid, choose_dst(grid, gpu), merged)
    assert isinstance(found, load_kernel("merging").LinkedPlan)
    cpu = torch.device("cpu")
    known = match_local(metric.cpu().double(), grid, choose_dst(grid, cpu), merged)
    of_found, of_known = (
        plan.unmerge(plan.chosen[..., None].int())[..., 0].cpu() for plan in (found, known)
    )
    assert (of_found == of_known).float().mean() > 0.98
    assert torch.equal(found.sizes, found.unlinked.sizes)
    torch.testing.assert_close(
        found.merge(metric), found.unlinked.merge(metric.float()).to(dtype), rtol=0.01, atol=0.01
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_means_are_the_same_to_the_bit_each_time(dtype, gpu):
    """Threads build the lists in another order each time."""
    grid = TokenGrid(64, 64)
    metric = torch.ones(2, grid.tokens, 64, device=gpu, dtype=dtype)
    x = torch.randn(2, grid.tokens, 320, device=gpu).to(dtype)
    merged = [match_local(metric, grid, choose_dst(grid, gpu), 2000).merge(x) for _ in range(8)]
    assert all(torch.equal(each, merged[0]) for each in merged[1:])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("channels", [16, 40, 64, 128, 256])
def test_the_same_queries_are_merged_as_on_the_cpu(channels, dtype, gpu):
    assert why_unusable("queries", gpu, dtype) == ""
    metric = torch.randn(2, 100 * 80, channels, device=gpu).to(dtype)
    numbers = torch.randperm(8000, device=gpu).view(100, 80)
    strips = Strips(numbers, torch.randperm(80, device=gpu)[:20].expand(100, -1), 64)
    found = merge_queries(metric, strips)
    on_cpu = Strips(numbers.cpu(), strips.dst.cpu(), 64)
    known = merge_queries(metric.cpu().double(), on_cpu)
    of_found, of_known = (each.kept.gather(2, each.slots).cpu() for each in (found, known))
    assert (of_found == of_known).float().mean() > 0.98
