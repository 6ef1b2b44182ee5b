"""Constants of a grid and a device: computed once, and kept for all calls, layers and runs.

No other tensor of ours outlives the block of the model in which it was made, but for the logs of
constant sizes (``find_log_sizes``), which are made in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import wraps
from threading import local
from typing import Any, ParamSpec, TypeVar

import torch

from .constant_store import ConstantStore

P = ParamSpec("P")
R = TypeVar("R")

STORE = ConstantStore(most_bytes=2**26, most_values=2**12)
"""This is the store of all constants. One grid of Wan at 720p with a local window holds 40 MiB, and
what the running model needs stays in any case."""

PAUSES: list[Callable[[], AbstractContextManager[Any]]] = []
"""In these contexts what outlives a block is made and freed. The package that knows what runs
enters them here."""

_thread = local()


@contextmanager
def apart_from_block() -> Iterator[None]:
    """Code inside makes or frees tensors that do not belong to the block that is running.

    ComfyUI may record what a block allocates and expect the same of the next block. A pause of its
    record cannot hold another one, so this enters them once, however deep constants are nested.
    """
    if getattr(_thread, "paused", False):
        yield
        return
    _thread.paused = True
    try:
        with ExitStack() as pauses:
            for pause in PAUSES:
                pauses.enter_context(pause())
            yield
    finally:
        _thread.paused = False


def constant(make: Callable[P, R]) -> Callable[P, R]:
    """Compute what ``make`` returns once for equal arguments, which must be hashable.

    Nobody may write to the tensors that are returned. They are made outside of inference mode, so
    that training can read them too.
    """
    compute = torch.inference_mode(False)(make)

    @wraps(make)
    def find(*args: P.args, **kwargs: P.kwargs) -> R:
        key = (make, args, *kwargs.items())
        kept = STORE.find(key)
        if kept is not None:
            return kept.value
        if _is_capturing():
            return compute(*args, **kwargs)  # only a replay computes it
        with apart_from_block():
            return STORE.keep(key, compute(*args, **kwargs))

    return find


def _is_capturing() -> bool:
    """Whether a graph of a GPU is captured. PyTorch may be built for GPUs where there is none, and
    then fails where it is asked.
    """
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def forget_constants() -> None:
    """Free the memory of all that nobody else holds."""
    with apart_from_block():
        STORE.empty()
