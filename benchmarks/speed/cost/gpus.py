"""Times of kernels on a GPU, estimated from its data sheet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .kernels import Kernel

LAUNCH_SECONDS = 5e-6
"""From one kernel to the next, where the GPU waits for the processor that starts them. An
assumption: about what PyTorch takes for one. Where the GPU is behind, or in a CUDA graph, most of
it hides behind earlier kernels."""


@dataclass(frozen=True)
class Gpu:
    """bandwidth: bytes per second. flops: per second, dense bfloat16 with float32 accumulation."""

    name: str
    bandwidth: float
    flops: float

    def estimate_busy_seconds(self, kernels: Iterable[Kernel]) -> float:
        """One after the other, each as fast as memory or arithmetic allows; without launches."""
        return sum(max(each.bytes / self.bandwidth, each.flops / self.flops) for each in kernels)


GPUS = (
    # NVIDIA Ada GPU architecture, whitepaper of the RTX 4090, appendix A.
    Gpu("RTX 4090", 1008e9, 165.2e12),
    # NVIDIA H200 Tensor Core GPU, data sheet: 1,979 TFLOP/s with sparsity, half of it without.
    Gpu("H200", 4.8e12, 989.5e12),
)
