"""Our own kernels that merge tokens where a GPU can run them, and what is taken elsewhere."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from ...tome_core import local_matching, merged_queries
from ...tome_core.draws import Draws
from ...tome_core.grid import TokenGrid
from ...tome_core.merged_queries import MergedQueries, Strips
from ...tome_core.partition import Destinations, choose_strided
from ...tome_core.plan import PicturePlan
from .triton_support import explain_failure

LEAST_ALIKE = 0.98
"""Of the tokens, how many must be merged as PyTorch merges them. Rounding decides between tokens
that are equally similar."""


def match_local(
    notes: set[str], metric: Tensor, grid: TokenGrid, dst: Destinations, merged: int
) -> PicturePlan:
    """As ``tome_core.match_local``. notes: where it is told that a GPU cannot run our kernels."""
    given = metric, grid, dst, merged
    if not _is_read(metric):
        return local_matching.match_local(*given)
    lack = explain_lack(metric.device, metric.dtype)
    if not lack:
        plan: PicturePlan = _import_kernels().match_local(*given)
        return plan
    if metric.device.type == "cuda":
        notes.add(f"merging is slower than it could be: {lack}")
    return local_matching.match_local(*given)


def merge_queries(metric: Tensor, strips: Strips) -> MergedQueries:
    """As ``tome_core``'s."""
    if _is_read(metric) and not explain_lack_of_queries(metric.device, metric.dtype):
        kernel = _import_kernel_of_queries()
        if kernel.fits(metric, strips):
            found: MergedQueries = kernel.merge_queries(metric, strips)
            return found
    return merged_queries.merge_queries(metric, strips)


def _is_read(metric: Tensor) -> bool:
    """Whether our kernels read such tokens."""
    return metric.dtype in (torch.float16, torch.bfloat16) and metric.stride(2) == 1


@lru_cache(maxsize=16)
def explain_lack(device: torch.device, dtype: torch.dtype = torch.float16) -> str:
    """Why our kernels do not run on a device, empty where they do. They are tried once."""
    return explain_failure(device, lambda: _work(_import_kernels(), device, dtype))


@lru_cache(maxsize=16)
def explain_lack_of_queries(device: torch.device, dtype: torch.dtype = torch.float16) -> str:
    """The same of the kernel that merges the queries of strips."""
    return explain_failure(device, lambda: _merges(_import_kernel_of_queries(), device, dtype))


@cache
def _import_kernels() -> Any:
    """Only where it is called: Triton is not everywhere."""
    return import_module(".triton_merging", __package__)


@cache
def _import_kernel_of_queries() -> Any:
    return import_module(".triton_merged_queries", __package__)


@torch.inference_mode()
def _work(kernels: Any, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the tokens of a small picture are merged as PyTorch merges them."""
    grid, draws = TokenGrid(20, 24), Draws((0,), device)
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(2, grid.tokens, 80, generator=generator, device=device, dtype=dtype)
    given = grid, choose_strided(grid, 2, 2, draws, device), grid.tokens // 3
    found, known = kernels.match_local(x, *given), local_matching.match_local(x.float(), *given)
    found_in, known_in = (  # the token in whose slot each token is
        each.unmerge(each.chosen[..., None].to(torch.int32)) for each in (found, known)
    )
    means = found.merge(x), found.plan.merge(x)
    alike = (found_in == known_in).float().mean() >= LEAST_ALIKE
    sizes = torch.equal(found.sizes, found.plan.sizes)
    return bool(alike) and sizes and torch.allclose(*means, rtol=0.02, atol=0.02)


@torch.inference_mode()
def _merges(kernel: Any, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the queries of small strips are merged as PyTorch merges them."""
    generator = torch.Generator(device).manual_seed(0)
    metric = torch.randn(2, 320, 64, generator=generator, device=device, dtype=dtype)
    numbers = torch.arange(320, device=device).view(4, 80)
    strips = Strips(numbers, numbers[:, ::4] % 80, 64)
    found = kernel.merge_queries(metric, strips)
    known = merged_queries.merge_queries(metric.float(), strips)
    found_in, known_in = (each.kept.gather(2, each.slots) for each in (found, known))
    return bool((found_in == known_in).float().mean() >= LEAST_ALIKE)
