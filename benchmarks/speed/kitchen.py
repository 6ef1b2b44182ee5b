"""comfy-kitchen's attention kernels beside our nodes: sparse attention, and INT8 of everything.

ComfyUI's node "Model Sparse Attention" and its INT8 attention call them. The ComfyUI that the
benchmark runs on may bring an older comfy-kitchen; the packed folder has a newer one for them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import comfy_kitchen
import torch
from comfy.model_patcher import ModelPatcher
from token_merge.nodes.hooks.attention.call import Attention, AttentionCall
from token_merge.nodes.hooks.attention.overrides import OVERRIDE_KEY
from torch import Tensor

from .diffusion_transformers import Clip
from .variants import UNPATCHED, Variant
from .windows import WINDOWS_2, WINDOWS_4, WINDOWS_MERGE, plan_windows, with_windows

MISSING = "left out: comfy-kitchen has no kernels here"
INT8 = "INT8 of all attention"
HALF_TYPES = (torch.bfloat16, torch.float16)
TAU, EXTRA_TOKENS, BLOCK = 1.3, 256, 64
"""Of ComfyUI's node, by default; and the tokens of a block."""

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Of (B, H, L, D) each."""


def list_variants(clip: Clip) -> list[Variant]:
    """The unpatched model, our nodes, and comfy-kitchen's kernels."""
    ours = (
        Variant("ours", "ours", partial(with_windows, setting=setting), setting)
        for setting in (WINDOWS_2, WINDOWS_4, WINDOWS_MERGE)
    )
    rivals = (
        Variant(name, "peer", partial(install, attend=attend))
        for name, attend in list_kernels(clip).items()
    )
    return [UNPATCHED, *ours, *rivals]


def list_kernels(clip: Clip) -> dict[str, Attend]:
    """All queries read the prompt's blocks of keys exactly, where picture and prompt are joined."""
    prompt = [0, -(-clip.stream.before // BLOCK)]
    by_default = {"tau": TAU, "sink_blocks": prompt, "token_aug": EXTRA_TOKENS}
    read = plan_windows(WINDOWS_2, clip.stream, torch.device("cpu")).keys_read
    share = max(0.01, (read - EXTRA_TOKENS) / clip.stream.length)
    return {
        "Sol-Attn, core's defaults": partial(sol_attention, options=by_default),
        "Sol-Attn, top-k, as many pairs as ×2": partial(
            sol_attention, options={**by_default, "topk_ratio": share}
        ),
        INT8: int8_attention,
    }


def install(model: ModelPatcher, attend: Attend) -> ModelPatcher:
    """A clone whose attention calls without a mask are computed by ``attend``."""

    def override(attention: Attention, *args: Any, **options: Any) -> Tensor:
        call = AttentionCall.read(*args, **options)
        if call.mask is not None or call.q.shape != call.k.shape:
            return attention(*args, **options)
        return call.shape_output(attend(call.q, call.k, call.v))

    clone = model.clone()
    clone.model_options["transformer_options"][OVERRIDE_KEY] = override
    return clone


def sol_attention(q: Tensor, k: Tensor, v: Tensor, options: dict[str, Any]) -> Tensor:
    """Raises RuntimeError where its kernel is missing."""
    _check("sol_attn_is_available", q)
    laid = (x.transpose(1, 2) for x in (q, k, v))
    out: Tensor = comfy_kitchen.sol_attn(*laid, **options)
    return out.transpose(1, 2)


def int8_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Raises RuntimeError where its kernel is missing."""
    _check("int8_attention_is_available", q)
    out: Tensor = comfy_kitchen.int8_attention(q, k, v)
    return out


def _check(name: str, q: Tensor) -> None:
    """Otherwise comfy-kitchen would compute it in PyTorch, with every score in memory."""
    is_available = getattr(comfy_kitchen, name, None)
    if is_available is None or not is_available(q.device) or q.dtype not in HALF_TYPES:
        raise RuntimeError(MISSING)
