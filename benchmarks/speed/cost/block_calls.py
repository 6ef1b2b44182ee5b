"""Counts one call of a block, within ComfyUI's own sampling."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any
from unittest import mock

import torch
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from token_merge.tome_core import payoff
from torch import Tensor
from torch.utils._pytree import tree_map

from ..sampling import sample
from . import own_kernels
from .attention_kernels import KERNELS
from .blocks import Block
from .counting import Count
from .stand_in_gpu import GpuTensor, StandInGpu

STEPS = 2
"""The last one counts: what is kept for a device or a run has been made before."""

Patch = Callable[[ModelPatcher], ModelPatcher]


def count_block(block: Block, patch: Patch) -> Count:
    """What one call of ``block`` costs on a GPU, with bfloat16, in a model that ``patch`` gave."""
    return count_on(StandInGpu(torch.device("meta"), KERNELS), block, patch)


def count_on(gpu: StandInGpu, block: Block, patch: Patch) -> Count:
    """As ``count_block``, on any stand-in."""
    counts: list[Count] = []

    def in_place_of_the_model(
        executor: WrapperExecutor, x: Tensor, *args: Any, **kwargs: Any
    ) -> Tensor:
        counts.append(Count())
        is_last = len(counts) == STEPS
        options = kwargs.get("transformer_options") or args[-1]
        _call(block, gpu, options, counts[-1] if is_last else None)
        return torch.zeros_like(x)

    model = block.build_host()
    model.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "benchmark_cost", in_place_of_the_model)
    # Layers are reduced however little is gained, so that the estimate says from where it pays.
    with mock.patch.dict(payoff.LEAST_FLOPS, clear=True), own_kernels.in_place_of_triton():
        sample(patch(model), block.request, steps=STEPS)
    return counts[-1]


def _call(block: Block, gpu: StandInGpu, options: dict[str, Any], count: Count | None) -> None:
    """One call of ``block`` with the transformer_options of a model."""
    prepared = block.prepare(gpu.held, torch.bfloat16)
    gpu.move(prepared.module)
    inputs = tree_map(GpuTensor, prepared.inputs)
    if count and prepared.cross_attention:
        prepared.cross_attention.register_forward_pre_hook(count.leave)
        prepared.cross_attention.register_forward_hook(count.enter)
    with torch.no_grad(), count or nullcontext(), gpu:
        prepared.module(**inputs, transformer_options={**options, **prepared.options})
