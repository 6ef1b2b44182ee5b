"""A model whose self-attention has local windows by ``flex_attention``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from token_merge.nodes.hooks.attention_call import Attention, AttentionCall
from token_merge.tome_core import Stream
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from ...settings import Setting
from ..self_attention import replace_self_attention
from ..windows import plan_windows
from .attention import Kernel, attend_by_flex
from .layout import Layout, lay_out


@cache
def compile_kernel() -> Kernel:
    """A kernel for each shape: it knows all lengths."""
    return torch.compile(flex_attention, dynamic=False)


def with_flex_attention(
    model: ModelPatcher, setting: Setting, stream: Stream, make_kernel: Callable[[Layout], Kernel]
) -> ModelPatcher:
    """A clone with the pairs of queries and keys that ``windows.with_windows`` gives it.

    make_kernel: from the layout on the CPU to what computes attention.
    """
    on_cpu = lay_out(plan_windows(setting, stream, torch.device("cpu")))
    on_device = cache(on_cpu.to)
    kernel = make_kernel(on_cpu)

    def attend(_: Attention, call: AttentionCall) -> Tensor:
        plan = plan_windows(setting, stream, call.q.device)
        scale = call.options.get("scale") or call.q.shape[-1] ** -0.5
        layout = on_device(call.q.device)
        return attend_by_flex(plan, layout, call.q, call.k, call.v, scale, kernel)

    return replace_self_attention(model, stream, attend)


def compute_all_scores(*args: Any, **options: Any) -> Tensor:
    """In place of a compiled kernel, for narrow models. PyTorch warns of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flex_attention(*args, **options)


with_compiled_kernel = partial(with_flex_attention, make_kernel=lambda _: compile_kernel())
with_all_scores = partial(with_flex_attention, make_kernel=lambda _: compute_all_scores)
