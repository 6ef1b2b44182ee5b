"""One attention layer as planning sees it: how much it computes, and where."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Literal

import torch

from .faster_forms import why_unavailable
from .gpus import compare_with_h100
from .grid import Stream

LEAST_FLOPS = {"merging": 3e11, "downsampling": 8.5e10}
"""One image's attention in one layer has to take so much, 4 N² C, on an NVIDIA H100. With less,
starting our kernels takes longer than they save: this was measured with SD 1.5, SDXL and Flux
there, and again on an H200, see docs/speed.md. All images of a batch are not counted: pictures must
not depend on how a batch is split."""

PAIR_TIMES = {"our kernel": 1.2, "our kernel in INT8": 0.9, "PyTorch": 2.0}
"""What local windows take for a query and a key that it reads, with all extra work, where
FlashAttention 2 takes 1. Measured on an H200: 1.06 to 1.24 with Wan's clips and 1.16 to 1.48 with
Flux at 2048 x 2048 by our kernel; with fewer tokens starting kernels takes longer, of which
``LEAST_FLOPS`` takes care. By FlashAttention 2 on tiles as images of a batch it was 1.4 to 2.1
without the copies. INT8 was not measured: its matrix products take 0.75 times as long on an A100
and an H100 by their data sheets, and 0.38 times on GeForce, where it may be faster than this."""

MOST_GROUPS = 4
"""Queries are split into at most so many groups. More hardly lower the error (factor 4, 8 pictures
of the trained model: mean squared error 1.8e-4 with 4 groups as with 16), and each has keys and
values to project and to copy."""


Precision = Literal["exact", "int8"]
"""It says how queries are multiplied by keys: as they are, or rounded to 8 bits."""


@dataclass(frozen=True)
class BackendSpeed:
    """How fast the layer is where it is not reduced.

    Args:
        name: of what computes its attention, as users know it.
        pair_time: what that takes for a query and a key, where FlashAttention 2 takes 1; at most 1.
    """

    name: str = "the attention of the unpatched model"
    pair_time: float = 1.0


FLASH_SPEED = BackendSpeed()
"""That of FlashAttention 2, and of all whose speed is not known."""


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
        precision: "int8" where the user chose attention that rounds to 8 bits.
        backend: what computes attention where nothing is reduced.

    Whether reducing pays is one rule: the GPU has to save as much time as what ``LEAST_FLOPS`` says
    saves beside FlashAttention 2. A backend that takes ``pair_time`` for all pairs saves that much
    less, if it is given fewer of them. Local windows are computed by our kernel in place of it, so
    that they save the difference, or nothing.
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
    backend: BackendSpeed = FLASH_SPEED
    precision: Precision = "exact"

    def find_precision(self) -> Precision:
        """Of local windows: exact where no faster form rounds, since nothing is gained then."""
        rounds = self.precision == "int8" and not self._why_no_kernel_in("int8")
        return "int8" if rounds else "exact"

    def why_no_window_kernel(self) -> str:
        """Why no faster form computes attention in local windows here, empty where one does."""
        return self._why_no_kernel_in(self.find_precision())

    def _why_no_kernel_in(self, precision: Precision) -> str:
        call = self.dtype, self.head_channels, self.masked, precision
        return why_unavailable("windows.attend", self.device, *call)

    def why_no_gain(self, kind: str) -> str:
        """Why "merging" or "downsampling" does not pay here, empty where it does."""
        return self._why_too_few_tokens(kind, self.backend.pair_time)

    def why_backend_is_faster(self, kind: str, share: float) -> str:
        """Why the backend is to compute all pairs, empty where local windows are faster.

        share: of all pairs, how many the windows read.
        """
        if self.device.type != "cuda":
            return ""
        form = "our kernel in INT8" if self.find_precision() == "int8" else "our kernel"
        form = "PyTorch" if self.why_no_window_kernel() else form
        time = share * PAIR_TIMES[form]
        if time >= self.backend.pair_time:
            return f"{self.backend.name} computes {self.stream.length:,} tokens faster"
        # Windows save pair_time - time; beside FlashAttention 2 they would save 1 - time.
        return self._why_too_few_tokens(kind, (self.backend.pair_time - time) / (1 - time))

    def _why_too_few_tokens(self, kind: str, saved: float) -> str:
        """saved: of the time that ``kind`` saves beside FlashAttention 2."""
        if not self.channels:
            return ""
        length, tokens = self.stream.length, self.stream.grid.tokens
        least = sqrt(find_least(kind, self.device) / (4 * self.channels * saved))
        if length >= least:
            return ""
        enough = 100 * ceil((tokens + least - length) / 100)
        faster = f" beside {self.backend.name}" if self.backend.pair_time < 1 else ""
        return f"{tokens:,} tokens are too few to gain; {enough:,} are enough on this GPU{faster}"


def find_least(kind: str, device: torch.device) -> float:
    """FLOPs from which on ``kind`` pays; 0 where it always does.

    The faster a GPU is, the more work it needs: the CPU that starts the kernels is as fast
    beside a slow GPU as beside a fast one.
    """
    if device.type != "cuda":
        return 0.0
    return LEAST_FLOPS.get(kind, 0.0) * compare_with_h100(device)
