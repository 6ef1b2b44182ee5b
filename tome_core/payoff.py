"""From how much work on a reduction pays on a GPU."""

from __future__ import annotations

from functools import lru_cache

import torch

LEAST_FLOPS = {"merging": 3e11, "downsampling": 8.5e10}
"""Of one image's attention in one layer, 4 N² C, on an NVIDIA H100. With less, starting our kernels
takes longer than they save: measured with SD 1.5, SDXL and Flux there, and again on an H200, see
docs/speed.md. All images of a batch are not counted: pictures must not depend on how a batch is
split."""

H100_PROCESSORS = 132

OF_PROCESSOR = {(9, 0): 1.0, (10, 0): 2.0, (8, 0): 0.5}
OF_OTHERS = 0.25
"""By compute capability: what one multiprocessor computes in half precision, as a share of one of
an H100, by the data sheets."""


def find_least(kind: str, device: torch.device) -> float:
    """FLOPs from which on ``kind`` pays; 0 where it always does.

    The faster a GPU is, the more work it needs: the processor that starts the kernels is as fast
    beside a slow GPU as beside a fast one.
    """
    if device.type != "cuda":
        return 0.0
    return LEAST_FLOPS.get(kind, 0.0) * _compare_with_h100(device)


@lru_cache(maxsize=16)
def _compare_with_h100(device: torch.device) -> float:
    # A tensor may say that it is on a GPU where there is none, in tracing for example.
    if (device.index or 0) >= torch.cuda.device_count():
        return 1.0
    of_gpu = torch.cuda.get_device_properties(device)
    share = OF_PROCESSOR.get((of_gpu.major, of_gpu.minor), OF_OTHERS)
    return share * of_gpu.multi_processor_count / H100_PROCESSORS
