"""Whether a device can run kernels of our own, which are written in Triton."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from ...tome_core.constants import apart_from_block

logger = logging.getLogger("token_merge")

LEAST_CAPABILITY = (8, 0)
"""It is that of the first NVIDIA GPUs that compute in bfloat16, and have enough shared memory for
the kernels."""

LEAST_TRITON = (3, 3)
"""Versions before it compile no function that is given several arguments as one."""

LEAST_ALIKE = 0.98
"""So many of the tokens that a kernel chooses must be those that it has to choose. Rounding decides
which of two that are equally similar is merged."""

PREPARING: list[Callable[[], AbstractContextManager[Any]]] = []
"""In these contexts a kernel is compiled and tried, which takes seconds once. Who can tell the user
of it enters them here."""


class TooLittleMemoryError(RuntimeError):
    """A kernel was not tried, since something else held the memory of the GPU."""


def why_unusable(
    kernel: str, device: torch.device, dtype: torch.dtype = torch.float16, *compiled_for: int | str
) -> str:
    """Why a kernel does not run on a device with tensors like these, empty where it does.

    It is tried once, on few tokens: a driver, a compiler or the installed Triton may not do what it
    needs. This is at the first attention call, since no model tells before for which channels and
    type a kernel will be compiled; but apart from what the block that runs allocates.

    Args:
        kernel: the module here that has it, and ``try_out``.
        compiled_for: what else the kernel is compiled for, as ``try_out`` takes it.
    """
    try:
        return _try_once(kernel, device, dtype, *compiled_for)
    except TooLittleMemoryError:
        return "the GPU had too little memory to try it"


@lru_cache(maxsize=64)
@apart_from_block()
def _try_once(
    kernel: str, device: torch.device, dtype: torch.dtype, *compiled_for: int | str
) -> str:
    """Raises TooLittleMemoryError, which is not remembered: there may be more at the next call."""
    # A tensor may say that it is on a GPU where there is none, in tracing for example.
    if device.type != "cuda" or (device.index or 0) >= torch.cuda.device_count():
        return "there is no GPU"
    if torch.version.hip or torch.cuda.get_device_capability(device) < LEAST_CAPABILITY:
        return "the GPU is not one of NVIDIA's since 2020"
    _announce(kernel, device, dtype, *compiled_for)
    try:
        with _preparing():
            works = _works(kernel, device, dtype, *compiled_for)
        return "" if works else "Triton gives other results here"
    except ImportError:
        return _name_old_triton() or "Triton is not installed"
    except Exception as error:
        if "out of memory" in str(error):  # PyTorch's errors and those of Triton share these words
            raise TooLittleMemoryError from error
        said = (str(error).strip() or repr(error))[:100]
        return _name_old_triton() or f"Triton does not run here ({said})"


@lru_cache(maxsize=64)
def _announce(kernel: str, *_: torch.device | torch.dtype | int | str) -> None:
    """Once for equal arguments: while memory is short, every attention call tries the kernel."""
    logger.info("Token Merge: trying our kernel %r. It may take some seconds, once.", kernel)


def _name_old_triton() -> str:
    """Why the installed Triton cannot compile our kernels, empty where its version can."""
    version = getattr(sys.modules.get("triton"), "__version__", "")
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    needed = ".".join(map(str, LEAST_TRITON))
    is_old = bool(numbers) and numbers < LEAST_TRITON
    return f"Triton {version} is installed, and {needed} or later is needed" if is_old else ""


@contextmanager
def _preparing() -> Iterator[None]:
    """A kernel is compiled and tried within."""
    with ExitStack() as told:
        for tell in PREPARING:
            told.enter_context(tell())
        yield


@torch.inference_mode()
def _works(kernel: str, device: torch.device, dtype: torch.dtype, *compiled_for: int | str) -> bool:
    pairs = load_kernel(kernel).try_out(device, dtype, *compiled_for)
    return all(is_alike(found, known) for found, known in pairs)


def is_alike(found: Tensor, known: Tensor) -> bool:
    """Up to rounding in half precision; numbers of tokens nearly everywhere."""
    if found.shape != known.shape:
        return False
    close = torch.isclose(found.float(), known.float(), rtol=0.02, atol=0.02)
    least = 1.0 if found.is_floating_point() else LEAST_ALIKE
    return bool(close.float().mean() >= least)


def load_kernel(name: str) -> Any:
    """The module of a kernel, only where it is used: Triton is not everywhere."""
    return import_module(f".{name}", __package__)
