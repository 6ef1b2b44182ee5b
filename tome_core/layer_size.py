"""The size of one layer: what is known of it before the model runs."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .payoff import find_least
from .streams import Stream


@dataclass(frozen=True)
class LayerSize:
    """How much a layer computes, and where.

    Args:
        stream: the sequence that the layer's attention reads.
        device: that computes it.
        downsample, resolutions: see ``Settings.find_parts``.
        channels: of a token in attention, all heads together; 0: few tokens are reduced, too.
    """

    stream: Stream
    device: torch.device
    downsample: int = 1
    resolutions: tuple[int, ...] = (1,)
    channels: int = 0

    def explain_loss(self, kind: str) -> str:
        """Why "merging" or "downsampling" does not pay here, empty where it does."""
        flops = 4 * self.stream.length**2 * self.channels
        if not self.channels or flops >= find_least(kind, self.device):
            return ""
        return f"{self.stream.grid.tokens} tokens are too few for {kind} to pay on this GPU"
