"""What changes the weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer, _muon

IN_BFLOAT16 = _muon._zeropower_via_newtonschulz
"""torch's own, for Muon."""


def make_optimizers(network: nn.Module, rate: float, device: torch.device) -> list[Optimizer]:
    """Muon for the matrices of blocks, which learn in fewer steps with it (updates as large as
    AdamW's: Liu et al., arXiv 2502.16982, section 2.2); AdamW for all else.
    """
    named = dict(network.named_parameters())
    turned = {name for name, one in named.items() if one.ndim == 2 and is_in_block(name)}
    matrices = [one for name, one in named.items() if one.ndim > 1 and name not in turned]
    others = [one for one in named.values() if one.ndim <= 1]
    groups: list[dict[str, Any]] = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
    decay, fused = 0.01, device.type == "cuda"
    if not (fused or torch.cpu._is_avx512_bf16_supported()):
        _muon._zeropower_via_newtonschulz = orthogonalise
    of_blocks = [named[name] for name in turned]
    return [
        Muon(of_blocks, lr=rate, weight_decay=decay, adjust_lr_fn="match_rms_adamw"),
        AdamW(groups, lr=rate, betas=(0.9, 0.99), weight_decay=decay, fused=fused),
    ]


def is_in_block(name: str) -> bool:
    """A matrix that tokens are multiplied with, and none that a noise level is."""
    return "blocks" in name and not any(word in name for word in ("mod", "emb"))


def orthogonalise(
    grad: Tensor, ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float
) -> Tensor:
    """``IN_BFLOAT16`` in single precision, as some processors are 60 times as slow in bfloat16.

    grad: (m, n). eps: least norm that it is divided by.
    """
    a, b, c = ns_coefficients
    wide = grad.float() if len(grad) <= grad.shape[1] else grad.float().T
    wide = wide / wide.norm().clamp(min=eps)
    for _ in range(ns_steps):
        gram = wide @ wide.T
        wide = a * wide + (b * gram + c * gram @ gram) @ wide
    return wide if wide.shape == grad.shape else wide.T
