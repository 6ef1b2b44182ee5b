"""The attention functions that ComfyUI and other nodes may use: what they take, and how fast they
are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import metadata
from typing import Literal

import torch

from ....tome_core.gpus import HALF, find_capability
from ....tome_core.layer import FLASH_SPEED, BackendSpeed
from .override_table import SAGE_ALONE

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

MOST_ROUNDED_CHANNELS = 128
"""Functions with a known speed leave heads with more channels, and single precision, to PyTorch's
attention."""


@dataclass(frozen=True)
class Function:
    """What is known of an attention function. The defaults are for one of which nothing is.

    SageAttention, for example, takes neither a mask nor more channels: it pads 72 channels to 128
    and refuses 136, and the mask that forks of it take is added to scores of base 2, where log s
    weighs too little.

    Args:
        name: as users know it.
        times: of a pair.
        mask: whether a call without a mask may be given one of one row for all queries. "free": it
            costs next to nothing, as where a kernel reads it beside the scales of the keys. "slow":
            it takes a slower kernel on a GPU. "beside": the function takes masks, but some GPUs
            have no kernel for them, so only where there is a mask anyway. "": it takes none.
        channels: whether it takes any multiple of 8 channels, up to 256.
        hands_masks_on: ComfyUI's function gives every call with a mask to PyTorch's attention.
        rounds: it multiplies queries by keys in 8 bits, or fewer.
    """

    name: str = FLASH_SPEED.name
    times: PairTimes = field(default_factory=dict)
    mask: Literal["", "beside", "slow", "free"] = ""
    channels: bool = False
    hands_masks_on: bool = False
    rounds: bool = False


PLAIN = Function(mask="slow", channels=True)
PYTORCH = replace(PLAIN, name="PyTorch's attention")
SAGE = Function("SageAttention", rounds=True)
FUNCTIONS = {
    "attention_basic": PLAIN,
    "attention_split": PLAIN,
    "attention_sub_quad": PLAIN,
    "attention_pytorch": PYTORCH,
    "attention_xformers": Function("xFormers", mask="beside", channels=True),
    "attention_flash": Function("FlashAttention", channels=True, hands_masks_on=True),
    "attention_sage": SAGE,
    SAGE_ALONE: SAGE,
    "attention3_sage": Function("SageAttention 3", SAGE_3, hands_masks_on=True, rounds=True),
    "attention_comfy_kitchen_int8": Function(
        "ComfyUI's INT8 attention", KITCHEN_INT8, mask="free", rounds=True
    ),
}
"""The key is the name of a function of ComfyUI, or ``SAGE_ALONE``; see ``Override.like``."""


def find_function(name: str) -> Function:
    """What is known of a function by its name."""
    return FUNCTIONS.get(name, Function())


@lru_cache(maxsize=1)
def _read_sage_times() -> PairTimes:
    """The times of the version that is installed."""
    try:
        major = int(metadata.version("sageattention").partition(".")[0])
    except (metadata.PackageNotFoundError, ValueError):
        major = 0
    return SAGE_BY_VERSION.get(major, {})


def find_speed(
    function: Function, device: torch.device, dtype: torch.dtype, channels: int
) -> BackendSpeed:
    """The speed of a function in calls with such tensors. channels: of a head."""
    times = _read_sage_times() if function is SAGE else function.times
    if times and (dtype not in HALF or channels > MOST_ROUNDED_CHANNELS):
        function, times = PYTORCH, {}
    return BackendSpeed(function.name, times.get(find_capability(device), 1.0))
