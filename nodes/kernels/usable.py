"""Whether a device can run kernels of our own, which are written in Triton."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from ...tome_core.constants import apart_from_block

LEAST_CAPABILITY = (8, 0)
"""It is that of the first NVIDIA GPUs that compute in bfloat16, and hold what the kernels need
beside a processor."""

LEAST_ALIKE = 0.98
"""So many of the tokens that a kernel chooses must be those that it has to choose. Rounding decides
which of two that are equally similar is merged."""


@lru_cache(maxsize=64)
@apart_from_block()
def why_unusable(
    kernel: str, device: torch.device, dtype: torch.dtype = torch.float16, *shape: int
) -> str:
    """Why a kernel does not run on a device with tensors like these, empty where it does.

    It is tried once, on few tokens: a driver, a compiler or the installed Triton may not do what it
    needs. This is at the first attention call, since no model tells before for which channels and
    type a kernel will be compiled; but apart from what the block that runs allocates.

    Args:
        kernel: the module here that has it, and ``try_out``.
        shape: what else the kernel is compiled for, as ``try_out`` takes it.
    """
    # A tensor may say that it is on a GPU where there is none, in tracing for example.
    if device.type != "cuda" or (device.index or 0) >= torch.cuda.device_count():
        return "there is no GPU"
    if torch.version.hip or torch.cuda.get_device_capability(device) < LEAST_CAPABILITY:
        return "the GPU is not one of NVIDIA's since 2020"
    try:
        return "" if _works(kernel, device, dtype, *shape) else "Triton gives other results here"
    except ImportError:
        return "Triton is not installed"
    except Exception as error:
        return f"Triton does not run here ({(str(error).strip() or repr(error))[:100]})"


@torch.inference_mode()
def _works(kernel: str, device: torch.device, dtype: torch.dtype, *shape: int) -> bool:
    pairs = load_kernel(kernel).try_out(device, dtype, *shape)
    return all(is_alike(found, known) for found, known in pairs)


def is_alike(found: Tensor, known: Tensor) -> bool:
    """Up to rounding in half precision; numbers of tokens nearly everywhere."""
    close = torch.isclose(found.float(), known.float(), rtol=0.02, atol=0.02)
    least = 1.0 if found.is_floating_point() else LEAST_ALIKE
    return found.shape == known.shape and bool(close.float().mean() >= least)


def load_kernel(name: str) -> Any:
    """The module of a kernel, only where it is used: Triton is not everywhere."""
    return import_module(f".{name}", __package__)
