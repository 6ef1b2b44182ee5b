"""One attention layer as planning sees it: how much it computes, and where."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .faster_forms import why_unavailable
from .gpus import compare_with_h100
from .grid import Stream

LEAST_FLOPS = {"merging": 3e11, "downsampling": 8.5e10}
"""One image's attention in one layer has to take so much, 4 N² C, on an NVIDIA H100. With less,
starting our kernels takes longer than they save: this was measured with SD 1.5, SDXL and Flux
there, and again on an H200, see docs/speed.md. All images of a batch are not counted: pictures must
not depend on how a batch is split."""

MOST_GROUPS = 4
"""Queries are split into at most so many groups. More hardly lower the error (factor 4, 8 pictures
of the trained model: mean squared error 1.8e-4 with 4 groups as with 16), and each has keys and
values to project and to copy."""


@dataclass(frozen=True)
class Layer:
    """What is known of a layer before any of its tokens.

    Args:
        stream: the sequence that its attention reads.
        device: that computes it.
        downsample: the latent's side over the side of the layer's grid.
        resolutions: this number for all layers of the model, finest first.
        channels: of a token in attention, all heads together; 0: few tokens are reduced, too.
        local_window: side of the box of exact keys around each tile of queries, in tokens; 0: none.
        most_groups: into which merged queries are split, each with keys of its own.
        dtype, head_channels, masked: of the attention call: its numbers' type, the channels of one
            head, and whether a mask hides keys.
    """

    stream: Stream
    device: torch.device
    downsample: int = 1
    resolutions: tuple[int, ...] = (1,)
    channels: int = 0
    local_window: int = 0
    most_groups: int = MOST_GROUPS
    dtype: torch.dtype = torch.float16
    head_channels: int = 64
    masked: bool = False

    def explain_slow_windows(self) -> str:
        """Why no faster form computes attention in local windows here, empty where one does."""
        call = self.dtype, self.head_channels, self.masked
        return why_unavailable("windows.attend", self.device, *call)

    def explain_loss(self, kind: str) -> str:
        """Why "merging" or "downsampling" does not pay here, empty where it does."""
        flops = 4 * self.stream.length**2 * self.channels
        if not self.channels or flops >= find_least(kind, self.device):
            return ""
        return f"{self.stream.grid.tokens} tokens are too few for {kind} to pay on this GPU"


def find_least(kind: str, device: torch.device) -> float:
    """FLOPs from which on ``kind`` pays; 0 where it always does.

    The faster a GPU is, the more work it needs: the processor that starts the kernels is as fast
    beside a slow GPU as beside a fast one.
    """
    if device.type != "cuda":
        return 0.0
    return LEAST_FLOPS.get(kind, 0.0) * compare_with_h100(device)
