"""Weights that training starts from."""

from __future__ import annotations

import torch
from torch import nn

ENDS = (
    *("out_layers.3.weight", "proj_out.weight", "out.2.weight"),
    *("mod.lin.weight", "modulation.lin.weight", "final_layer.linear.weight"),
    *("adaLN_modulation.1.weight", "modulation", "time_projection.1.weight"),
    *("cross_attn.o.weight", "head.head.weight"),
)
"""What ends a branch, or opens its gate, in the UNet, the Flux and the Wan: it starts as nothing,
so that every branch does.
"""


@torch.no_grad()
def fill(network: nn.Module, seed: int = 0) -> None:
    """Random weights that keep the variance of what they read."""
    for name, weight in network.named_parameters():
        if weight.ndim == 1:
            weight.fill_(0.0 if name.endswith("bias") else 1.0)
        elif name.endswith(ENDS):
            weight.zero_()
        else:
            generator = torch.Generator(weight.device).manual_seed(seed)
            weight.normal_(0.0, weight[0].numel() ** -0.5, generator=generator)
            seed += 1
