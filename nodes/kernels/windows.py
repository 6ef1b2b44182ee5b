"""Attention in local windows by our own kernels: keys and values are read where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ...tome_core.constants import constant
from ...tome_core.draws import Draws
from ...tome_core.grid import Stream, TokenGrid
from ...tome_core.layer import Precision
from ...tome_core.tokens import make_output
from ...tome_core.windows import MergedQueries, WindowGeometry, WindowPlan, cut_strips
from ...tome_core.windows.attention import attend_by_sets
from ...tome_core.windows.int8 import attend_in_int8
from ...tome_core.windows.planning import fit_windows
from ...tome_core.windows.queries import merge_queries_by_sorting
from . import attention_triton
from .attention import attend_tiles, list_constants, list_strides
from .key_blocks import (
    list_blocks_of_others,
    list_far_blocks,
    list_near_blocks,
    list_picture_blocks,
)
from .rounding import KeysAndValues, round_and_scale
from .shapes import Shape, choose_shape


def attend(
    plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """As ``windows.attend`` in ``tome_core``, or ``attend_in_int8`` there where the plan says so;
    without a mask and in half precision.
    """
    assert mask is None
    out, geometry = make_output(q, q.shape[3]), plan.geometry
    shape = choose_shape(q.device, q.shape[3], precision=plan.precision)
    tensors = q, round_and_scale(k, v, shape, rounds=plan.precision == "int8")
    if plan.merged:
        out_logs = q.new_empty(q.shape[:3], dtype=torch.float32)
        near = list_near_blocks(geometry, shape.keys)
        attend_tiles(out, out_logs, *tensors, geometry.owned, plan.read, near, scale, shape)
        _attend_merged(out, out_logs, *tensors, plan, plan.merged, scale, shape)
    else:
        blocks = list_picture_blocks(geometry, shape.keys)
        attend_tiles(out, None, *tensors, geometry.owned, plan.read, blocks, scale, shape)
    if plan.of_others:
        blocks = list_blocks_of_others(geometry, shape.keys)
        others = _number_others(geometry)
        attend_tiles(out, None, *tensors, others, plan.read, blocks, scale, shape)
    return out


def _attend_merged(
    out: Tensor,
    out_logs: Tensor,
    q: Tensor,
    read_from: KeysAndValues,
    plan: WindowPlan,
    merged: MergedQueries,
    scale: float,
    shape: Shape,
) -> None:
    """Join what the picture's merged queries find in the far keys to what ``out`` holds."""
    geometry = plan.geometry
    blocks = list_far_blocks(geometry, shape.keys)
    images, strips, strip_size = merged.slots.shape
    assert merged.kept.shape[2] <= shape.queries
    k = read_from.k
    unit, strides = list_strides(out, q, k, read_from.v)
    # Unlike PyTorch, Triton does not look where its tensors are.
    with torch.cuda.device_of(q):
        attention_triton.attend_merged[strips, q.shape[1], images](
            out,
            out_logs,
            q,
            read_from.k,
            read_from.v,
            read_from.steps,
            read_from.mean,
            read_from.largest,
            _number_tiles(geometry),
            geometry.owned,
            merged.kept,
            merged.slots,
            plan.read,
            blocks.starts,
            blocks.logs,
            *strides,
            q.shape[2],
            strips // len(blocks.starts),
            strip_size,
            merged.kept.shape[2],
            merged.kept.stride(1),
            blocks.starts.shape[1],
            *plan.read.shape,
            q.shape[1] // k.shape[1],
            scale,
            **list_constants(q, unit, shape, read_from),
        )


@constant
def _number_tiles(geometry: WindowGeometry) -> Tensor:
    """The tokens of each tile. (T, Q) int32."""
    return geometry.queries.int()


@constant
def _number_others(geometry: WindowGeometry) -> Tensor:
    """The tokens that are not of the picture, as one tile. (1, n) int32."""
    return geometry.others.int()[None]


def try_out(
    device: torch.device,
    dtype: torch.dtype,
    channels: int,
    merges: bool,
    precision: Precision = "exact",
) -> Iterator[tuple[Tensor, Tensor]]:
    """What the kernels compute of a small picture with a prompt, and what it has to be.

    merges: whether queries are merged, which takes a kernel of its own.
    """
    draws, stream = Draws((0,), device), Stream(TokenGrid(20, 20), before=3)
    generator = torch.Generator(device).manual_seed(0)
    size = (3, 1, 2, stream.length, channels)
    q, k, v = torch.randn(size, generator=generator, device=device, dtype=dtype)
    geometry = fit_windows(stream, TokenGrid(10, 10), 8, 1, 0.8, device)
    plan = WindowPlan(geometry, geometry.cells.draw(draws, 2), precision=precision)
    if merges:
        strips = cut_strips(geometry.axes, (2, 2), 0.2, None, device)
        assert strips is not None
        metric = stream.take_picture(q).mean(dim=1)
        plan = replace(plan, merged=merge_queries_by_sorting(metric, strips))
    given = plan, q, k, v, None, channels**-0.5
    known = attend_in_int8 if precision == "int8" else attend_by_sets
    yield attend(*given), known(*given)
