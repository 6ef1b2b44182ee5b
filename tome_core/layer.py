"""One attention layer as planning sees it: how much it computes, and where."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .constants import constant
from .grid import Stream

LEAST_FLOPS = {"merging": 3e11, "downsampling": 8.5e10}
"""One image's attention in one layer has to take so much, 4 N² C, on an NVIDIA H100. With less,
starting our kernels takes longer than they save: this was measured with SD 1.5, SDXL and Flux
there, and again on an H200, see docs/speed.md. All images of a batch are not counted: pictures must
not depend on how a batch is split."""

H100_PROCESSORS = 132

OF_PROCESSOR = {(9, 0): 1.0, (10, 0): 2.0, (8, 0): 0.5}
OF_OTHERS = 0.25
"""The key is the compute capability. The value is what one multiprocessor computes in half
precision, as a share of one of an H100, by the data sheets."""

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
    """

    stream: Stream
    device: torch.device
    downsample: int = 1
    resolutions: tuple[int, ...] = (1,)
    channels: int = 0
    local_window: int = 0
    most_groups: int = MOST_GROUPS

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
    return LEAST_FLOPS.get(kind, 0.0) * _compare_with_h100(device)


@constant
def _compare_with_h100(device: torch.device) -> float:
    # A tensor may say that it is on a GPU where there is none, in tracing for example.
    if (device.index or 0) >= torch.cuda.device_count():
        return 1.0
    of_gpu = torch.cuda.get_device_properties(device)
    share = OF_PROCESSOR.get((of_gpu.major, of_gpu.minor), OF_OTHERS)
    return share * of_gpu.multi_processor_count / H100_PROCESSORS
