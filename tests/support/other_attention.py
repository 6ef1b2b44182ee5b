"""Attention of other nodes: stand-ins that behave as their public sources do.

The real ones need a GPU, or a ComfyUI that is newer than the one that the tests run on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from comfy.ldm.modules.attention import attention_pytorch
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import CallbacksMP
from einops import rearrange
from torch import Tensor

OVERRIDE = "optimized_attention_override"
BLOCK = 64
"""Queries and keys that sparse attention chooses together."""


def name(function: Any, module: str, qualname: str) -> Any:
    """Let a stand-in have the names of the function that it stands for."""
    function.__module__, function.__qualname__ = module, qualname
    return function


def put(model: ModelPatcher, override: Callable[..., Tensor]) -> ModelPatcher:
    clone = model.clone()
    clone.model_options["transformer_options"][OVERRIDE] = override
    return clone


def round_as_int8(x: Tensor) -> Tensor:
    """With one scale for each token of a head. x: (B, H, N, D)."""
    step = x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 127
    return (x / step).round() * step


def split(x: Tensor, heads: int, skip_reshape: bool) -> Tensor:
    """(B, N, H·D), or (B, H, N, D) where heads are apart already -> (B, H, N, D)."""
    return x if skip_reshape else rearrange(x, "b n (h d) -> b h n d", h=heads)


def attend_in_int8(
    q: Tensor, k: Tensor, v: Tensor, heads: int, mask: Tensor | None = None,
    attn_precision: Any = None, skip_reshape: bool = False, **options: Any,
) -> Tensor:  # fmt: skip
    """Exact but for 8 bits of the queries and keys, which are smoothed by their mean."""
    q, k, v = (split(x, heads, skip_reshape) for x in (q, k, v))
    k = k - k.mean(dim=-2, keepdim=True)
    given = round_as_int8(q), round_as_int8(k), v
    options.pop("_inside_attn_wrapper", None)
    return attention_pytorch.__wrapped__(*given, heads, mask, skip_reshape=True, **options)


def refuse_masks(attend: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """As SageAttention's fastest kernels."""

    def attend_unmasked(*args: Any, mask: Tensor | None = None, **options: Any) -> Tensor:
        assert len(args) < 5 or args[4] is None, "it was given a mask"
        assert mask is None, "it was given a mask"
        return attend(*args, **options)

    return attend_unmasked


def patch_sage(model: ModelPatcher, attend: Callable[..., Tensor] | None = None) -> ModelPatcher:
    """KJNodes' Patch Sage Attention.

    attend: what it calls in place of its kernel.
    """
    kernel = attend or refuse_masks(attend_in_int8)

    def override(func: Any, *args: Any, **options: Any) -> Tensor:
        return kernel(*args, **options)

    place = "custom_nodes.ComfyUI-KJNodes.nodes.model_optimization_nodes"
    qualname = "PathchSageAttentionKJ.patch.<locals>.attention_override_sage"
    return put(model, name(override, place, qualname))


def set_model_optimized_attention(
    self: ModelPatcher, optimized_attention: Callable[..., Tensor]
) -> None:
    """As ComfyUI's from version 0.32 on, to be put on ModelPatcher where it is missing."""

    def optimized_attention_override(_: Any, *args: Any, **options: Any) -> Tensor:
        return optimized_attention(*args, **options)

    self.model_options["transformer_options"][OVERRIDE] = optimized_attention_override


def make_comfy_kitchen() -> Callable[..., Tensor]:
    """ComfyUI's INT8 attention, which takes masks."""
    copy = FunctionType(
        attend_in_int8.__code__,
        attend_in_int8.__globals__,
        "attention_comfy_kitchen_int8",
        attend_in_int8.__defaults__,
    )
    return name(copy, "comfy.ldm.modules.attention", "attention_comfy_kitchen_int8")


def patch_backend(model: ModelPatcher, attend: Callable[..., Tensor]) -> ModelPatcher:
    """ComfyUI's Model Attention Backend; ModelPatcher has the setter."""
    clone = model.clone()
    clone.set_model_optimized_attention(attend)
    return clone


def patch_comfy_kitchen(model: ModelPatcher) -> ModelPatcher:
    """The same with ComfyUI's INT8 attention."""
    return patch_backend(model, make_comfy_kitchen())


def patch_sparse(model: ModelPatcher, keep: float = 0.4) -> ModelPatcher:
    """ComfyUI's Model Sparse Attention, which puts itself on top again before each step.

    keep: the share of the key blocks that each query block reads.
    """
    installed: set[Any] = set()

    def install(options: dict[str, Any]) -> None:
        current = options.get(OVERRIDE)
        if current not in installed:
            override = partial(attend_sparsely, current, keep)
            function = lambda func, *args, **given: override(func, *args, **given)  # noqa: E731
            place = "/ComfyUI/comfy_extras/nodes_sparse_attention"
            options[OVERRIDE] = name(function, place, "make_attention_override.<locals>.override")
            installed.add(options[OVERRIDE])

    clone = model.clone()
    install(clone.model_options["transformer_options"])
    clone.add_callback_with_key(
        CallbacksMP.ON_PREPARE_STATE,
        "block_sparse_attention",
        # ComfyUI 0.16.3 gives no options here.
        lambda _patcher, _timestep, options=None: (
            options and install(options["transformer_options"])
        ),
    )
    return clone


def attend_sparsely(
    previous: Any, keep: float, func: Any, q: Tensor, k: Tensor, v: Tensor, heads: int,
    mask: Tensor | None = None, skip_reshape: bool = False, skip_output_reshape: bool = False,
    **options: Any,
) -> Tensor:  # fmt: skip
    """By the blocks of keys whose means are most similar to that of a block of queries.

    What it declines goes to the override before it: masks, and keys of another number than queries.
    """
    shapes = {"skip_reshape": skip_reshape, "skip_output_reshape": skip_output_reshape}
    if mask is not None or q.shape != k.shape:
        given = (q, k, v, heads)
        rest = {"mask": mask, **shapes, **options}
        return previous(func, *given, **rest) if previous else func(*given, **rest)
    q, k, v = (split(x, heads, skip_reshape) for x in (q, k, v))
    allowed = choose_blocks(q, k, keep)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
    return out if skip_output_reshape else rearrange(out, "b h n d -> b n (h d)")


def choose_blocks(q: Tensor, k: Tensor, keep: float) -> Tensor:
    """Which keys each query reads, (B, H, N, N) bool. q, k: (B, H, N, D)."""
    tokens = q.shape[2]
    padding = -tokens % BLOCK
    means = (F.pad(x, (0, 0, 0, padding)).unflatten(2, (-1, BLOCK)).mean(dim=3) for x in (q, k))
    scores = torch.matmul(next(means), next(means).mT)  # (B, H, blocks, blocks)
    count = max(1, round(keep * scores.shape[-1]))
    chosen = torch.zeros_like(scores, dtype=torch.bool)
    chosen.scatter_(-1, scores.topk(count, dim=-1).indices, True)
    chosen |= torch.eye(scores.shape[-1], dtype=torch.bool, device=q.device)
    every = chosen.repeat_interleave(BLOCK, dim=2).repeat_interleave(BLOCK, dim=3)
    return every[:, :, :tokens, :tokens]


def patch_gate(model: ModelPatcher) -> ModelPatcher:
    """An unknown pack that computes in 8 bits but in the first step."""
    first: list[float] = []

    def override(func: Any, *args: Any, **options: Any) -> Tensor:
        sigma = float(options["transformer_options"]["sigmas"][0])
        first.append(sigma)
        return (func if sigma >= max(first) else attend_in_int8)(*args, **options)

    return put(model, name(override, "/comfyui/custom_nodes/ComfyUI-Gate.nodes", "Gate.attend"))


def patch_unknown(model: ModelPatcher) -> ModelPatcher:
    """An unknown node that calls ComfyUI's function."""

    def override(func: Any, *args: Any, **options: Any) -> Tensor:
        return func(*args, **options)

    return put(model, override)
