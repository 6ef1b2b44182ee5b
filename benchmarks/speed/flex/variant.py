"""A model whose self-attention has local windows by ``flex_attention``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from token_merge.nodes.hooks.attention_call import OVERRIDE_KEY
from token_merge.tome_core import Stream
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from ...settings import Setting
from ..attention_watch import tokens_dim
from ..windows import plan_windows
from .attention import Kernel, attend_by_flex
from .layout import Layout, lay_out


@cache
def compile_kernel() -> Kernel:
    """A kernel for each shape: it knows all lengths."""
    return torch.compile(flex_attention, dynamic=False)  # type: ignore[no-any-return]


def with_flex_attention(
    model: ModelPatcher, setting: Setting, stream: Stream, make_kernel: Callable[[Layout], Kernel]
) -> ModelPatcher:
    """A clone with the pairs of queries and keys that ``windows.with_windows`` gives it.

    make_kernel: from the layout on the CPU to what computes attention.
    """
    on_cpu = lay_out(plan_windows(setting, stream, torch.device("cpu")))
    on_device = cache(on_cpu.to)
    kernel = make_kernel(on_cpu)

    def attend(
        attention: Callable[..., Tensor],
        q: Tensor,
        k: Tensor,
        v: Tensor,
        heads: int,
        **options: Any,
    ) -> Tensor:
        if k.shape[tokens_dim(options)] != stream.length:
            return attention(q, k, v, heads, **options)  # to the prompt
        if not options.get("skip_reshape"):
            q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
        plan = plan_windows(setting, stream, q.device)
        scale = options.get("scale") or q.shape[-1] ** -0.5
        out = attend_by_flex(plan, on_device(q.device), q, k, v, scale, kernel)
        return out if options.get("skip_output_reshape") else out.transpose(1, 2).flatten(2)

    clone = model.clone()
    clone.model_options["transformer_options"][OVERRIDE_KEY] = attend
    return clone


with_compiled_kernel = partial(with_flex_attention, make_kernel=lambda _: compile_kernel())
with_all_scores = partial(with_flex_attention, make_kernel=lambda _: flex_attention)
"""Without a compiler; for narrow models."""
