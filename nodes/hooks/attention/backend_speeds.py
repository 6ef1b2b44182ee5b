"""How fast the attention functions are that ComfyUI and other nodes may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata

import torch

from ....tome_core.gpus import find_capability
from ....tome_core.layer import FLASH_SPEED, BackendSpeed

PairTimes = Mapping[tuple[int, int], float]
"""What a function takes for a query and a key where FlashAttention 2 takes 1, by the compute
capability of the GPU. What is not known stands in no table, and counts as 1.

Those of SageAttention are the bars of its repository's figures with 128 channels and 8,192 tokens,
without its quantizing (assets/*_hd128.png, *_sageattn2++.png, sage3_speed.png; also in arXiv
2411.10958, 2505.21136 and 2505.11594): of A100, RTX 3090, RTX 4090, H100 and RTX 5090. Other cards
of a capability gain less: an RTX A6000 takes 0.67 and an L20 0.52. They leave a few more layers to
it than would be best."""

SAGE_1: PairTimes = {(8, 0): 0.75, (8, 6): 0.52, (8, 9): 0.52, (9, 0): 0.66, (12, 0): 0.44}
SAGE_2: PairTimes = {(8, 0): 0.75, (8, 6): 0.52, (8, 9): 0.33, (9, 0): 0.38, (12, 0): 0.34}
SAGE_3: PairTimes = {(12, 0): 0.20}
SAGE_BY_VERSION = {1: SAGE_1, 2: SAGE_2}

KITCHEN_INT8: PairTimes = {(12, 0): 0.40}
"""Of comfy-kitchen 0.2.36, whose docs/benchmarks/dense-tma-sm120.md has 513 to 536 TFLOPS on an RTX
5090 D, where FlashAttention 2 has 214 in the figure of SageAttention on an RTX 5090."""

MOST_CHANNELS = 128
"""Heads with more are left to PyTorch's attention by these functions, as single precision is."""

HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Function:
    """name: as users know it. times: of a pair."""

    name: str
    times: PairTimes = field(default_factory=dict)


@lru_cache(maxsize=1)
def _read_sage() -> Function:
    """Of the version that is installed."""
    try:
        major = int(metadata.version("sageattention").partition(".")[0])
    except (metadata.PackageNotFoundError, ValueError):
        major = 0
    return Function("SageAttention", SAGE_BY_VERSION.get(major, {}))


PYTORCH = Function("PyTorch's attention")
FUNCTIONS = {
    "attention_pytorch": PYTORCH,
    "attention_xformers": Function("xFormers"),
    "attention_flash": Function("FlashAttention"),
    "attention3_sage": Function("SageAttention 3", SAGE_3),
    "attention_comfy_kitchen_int8": Function("ComfyUI's INT8 attention", KITCHEN_INT8),
}
SAGE_NAMES = ("attention_sage", "sageattn")


def find_speed(name: str, device: torch.device, dtype: torch.dtype, channels: int) -> BackendSpeed:
    """Of a function with calls of such tensors.

    name: of the function of ComfyUI that computes them, see ``Override.like``. channels: of a head.
    """
    function = _read_sage() if name in SAGE_NAMES else FUNCTIONS.get(name)
    if function is None:
        return FLASH_SPEED
    if function.times and (dtype not in HALF or channels > MOST_CHANNELS):
        function = PYTORCH
    return BackendSpeed(function.name, function.times.get(find_capability(device), 1.0))
