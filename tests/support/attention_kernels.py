"""Stand-ins for attention kernels that only a GPU has, below ComfyUI's own functions.

They compute what the real ones compute, in float32, and refuse what these are documented to refuse,
with the same exceptions. ComfyUI catches some of those and falls back to PyTorch's attention, so
each refusal is noted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from types import SimpleNamespace
from typing import Any

import comfy.ldm.modules.attention as attention
import pytest
import torch
from torch import Tensor

HALVES = (torch.float16, torch.bfloat16)
LOG2_E = 1.44269504


@dataclass
class Kernels:
    """computed, refused: names of the kernels that were called, in order."""

    computed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def note(self, kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @wraps(kernel)
        def noted(*args: Any, **kwargs: Any) -> Tensor:
            try:
                out = kernel(*args, **kwargs)
            except Exception:
                self.refused.append(kernel.__name__)
                raise
            self.computed.append(kernel.__name__)
            return out

        return noted


def install_kernels(monkeypatch: pytest.MonkeyPatch, *, sage_takes_masks: bool = False) -> Kernels:
    """As if xFormers, FlashAttention and SageAttention were installed beside ComfyUI."""
    kernels = Kernels()
    sage = sage_of_a_fork if sage_takes_masks else sageattn
    ops = SimpleNamespace(memory_efficient_attention=kernels.note(memory_efficient_attention))
    values = {
        "xformers": SimpleNamespace(ops=ops),
        "flash_attn_func": kernels.note(flash_attn_func),
        "sageattn": kernels.note(sage),
        "sageattn3_blackwell": kernels.note(sageattn3_blackwell),
    }
    if hasattr(attention, "SAGE_ATTENTION_SUPPORTS_MASK"):  # a ComfyUI that asks
        values["SAGE_ATTENTION_SUPPORTS_MASK"] = sage_takes_masks
    for name, value in values.items():
        monkeypatch.setattr(attention, name, value, raising=False)
    return kernels


def use_attention(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Tensor]) -> None:
    """As if ComfyUI had been started with this function: models import it by its name."""
    started_with = attention.optimized_attention
    for module in list(sys.modules.values()):
        for name in ("optimized_attention", "optimized_attention_masked"):
            if vars(module).get(name) is started_with:
                monkeypatch.setattr(module, name, function)


def memory_efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None = None,
    p: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """xFormers 0.0.35, (B, N, H, D).

    Its flash kernel where there is no bias, else that of CUTLASS: ``not_supported_reasons`` of
    fmha/flash.py and fmha/cutlass.py, ``validate_inputs`` of fmha/common.py. The GPU is an RTX 30
    or 40; on later ones there is no kernel that takes a bias.
    """
    expected = (query.shape[0], query.shape[2], query.shape[1], key.shape[1])
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError("Query/Key/Value should either all have the same dtype")
    if attn_bias is not None and attn_bias.shape != expected:
        raise ValueError(f"Invalid shape for attention bias: {attn_bias.shape}")
    flash = attn_bias is None and query.dtype in HALVES and query.shape[3] <= 256
    aligned = 8 if query.dtype in HALVES else 4
    reasons = [
        f"{name}: {each.stride()}"
        for name, each in {"query": query, "key": key, "value": value}.items()
        if each.shape[3] % aligned or each.stride(2) % aligned or each.stride(3) > 1
    ]
    if query.dtype not in (*HALVES, torch.float32):
        reasons.append(f"dtype={query.dtype}")
    if attn_bias is not None:
        aligned = 128 // torch.finfo(attn_bias.dtype).bits
        if any(stride % aligned for stride in attn_bias.stride()[:3]) or attn_bias.stride(3) > 1:
            reasons.append(f"attn_bias.stride() = {attn_bias.stride()}")
        if attn_bias.dtype != query.dtype:
            reasons.append(f"attn_bias.dtype={attn_bias.dtype}")
    if reasons:
        name = "fa2F" if flash else "cutlassF"
        raise NotImplementedError(f"No operator found, {name}: {', '.join(reasons)}")
    heads_first = (each.transpose(1, 2) for each in (query, key, value))
    return attend(*heads_first, attn_bias, scale).transpose(1, 2)


def flash_attn_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
) -> Tensor:
    """FlashAttention 2, (B, N, H, D): ``mha_fwd`` of csrc/flash_attn/flash_api.cpp.

    It has no mask. It pads the head dimension to a multiple of 8 by itself.
    """
    if q.dtype not in HALVES:
        raise RuntimeError("FlashAttention only support fp16 and bf16 data type")
    if not q.dtype == k.dtype == v.dtype:
        raise RuntimeError("query and key must have the same dtype")
    if q.shape[3] > 256:
        raise RuntimeError("FlashAttention forward only supports head dimension at most 256")
    if any(each.stride(3) != 1 for each in (q, k, v)):
        raise RuntimeError("Input tensor must have contiguous last dimension")
    if q.shape[2] % k.shape[2]:
        raise RuntimeError("Number of heads in key/value must divide number of heads in query")
    repeats = q.shape[2] // k.shape[2]
    k, v = (each.repeat_interleave(repeats, 2) for each in (k, v))
    return attend(*(each.transpose(1, 2) for each in (q, k, v)), None, softmax_scale).transpose(
        1, 2
    )


def sageattn(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tensor_layout: str = "HND",
    is_causal: bool = False,
    sm_scale: float | None = None,
    return_lse: bool = False,
    **kwargs: Any,
) -> Tensor:
    """SageAttention 2.2, sageattention/core.py, but without rounding to 8 bits.

    It pads less than 64 channels to 64, and 65 to 127 to 128. It takes no mask: an ``attn_mask``
    would go unseen into ``kwargs``.
    """
    return _sage(q, k, v, tensor_layout, sm_scale, None)


def sage_of_a_fork(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tensor_layout: str = "HND",
    is_causal: bool = False,
    attn_mask: Tensor | None = None,
    sm_scale: float | None = None,
    return_lse: bool = False,
    **kwargs: Any,
) -> Tensor:
    """As forks that give the mask to ``sageattn_qk_int8_pv_fp16_triton``.

    That kernel computes powers of 2 (triton/attn_qk_int8_per_block.py). The queries are multiplied
    by log2(e) before, and a mask of numbers is added as it is: right for masks of 0 and -inf alone.
    """
    if attn_mask is not None and attn_mask.dtype not in (torch.bool, q.dtype):
        raise AssertionError("attn_mask must be of dtype bool or the same dtype as q.")
    return _sage(q, k, v, tensor_layout, sm_scale, attn_mask)


def _sage(
    q: Tensor, k: Tensor, v: Tensor, layout: str, scale: float | None, mask: Tensor | None
) -> Tensor:
    assert q.dtype in HALVES, "Input tensors must be in dtype of torch.float16 or torch.bfloat16"
    assert q.dtype == k.dtype == v.dtype, "All tensors must have the same dtype."
    assert q.is_cuda, "Input tensors must be on cuda."
    if q.shape[3] > 128:
        raise ValueError(f"Unsupported head_dim: {q.shape[3]}")
    assert all(each.stride(3) == 1 for each in (q, k, v)), "Last dim of qkv must be contiguous."
    if layout == "NHD":
        return _sage(*(each.transpose(1, 2) for each in (q, k, v)), "HND", scale, mask).transpose(
            1, 2
        )
    repeats = q.shape[1] // k.shape[1]
    k, v = (each.repeat_interleave(repeats, 1) for each in (k, v))
    if mask is None:
        return attend(q, k, v, None, scale)
    if mask.dtype == torch.bool:
        mask = torch.where(mask, 0.0, -1e6)
    return attend(q, k, v, mask.float() / LOG2_E, scale)


def sageattn3_blackwell(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False) -> Tensor:
    """SageAttention 3, without rounding to 4 bits.

    sageattention3_blackwell: sageattn3/api.py takes the mean off the keys in place, and
    ``DISPATCH_HEAD_DIM`` of quantization/fp4_quantization_4d.cu knows two head dimensions.
    """
    if q.shape[3] not in (64, 128):
        raise ValueError(f"Unsupported head dim: {q.shape[3]}")
    k -= k.mean(dim=-2, keepdim=True)
    return attend(q, k, v, None, None)


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float | None) -> Tensor:
    """Attention in float32. (B, H, Nq, D), (B, H, Nk, D) -> (B, H, Nq, D)."""
    scale = q.shape[3] ** -0.5 if scale is None else scale
    scores = (q.float() @ k.float().mT) * scale
    scores = scores if bias is None else scores + bias
    return (scores.softmax(dim=-1) @ v.float()).to(v.dtype)
