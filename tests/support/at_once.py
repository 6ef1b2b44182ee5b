"""Functions that run at the same time, each in a thread of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Lock
from typing import Any, TypeVar

from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrappersMP

Result = TypeVar("Result")
SECONDS = 60
"""After this time a thread that waits for another one fails, instead of the whole run."""


def run_at_once(*functions: Callable[[], Result]) -> list[Result]:
    """What each function returns; raises where one of them does."""
    barrier = Barrier(len(functions), timeout=SECONDS)

    def start(function: Callable[[], Result]) -> Result:
        barrier.wait()
        return function()

    with switching_often(), ThreadPoolExecutor(len(functions)) as pool:
        return [each.result() for each in [pool.submit(start, each) for each in functions]]


@contextmanager
def switching_often() -> Iterator[None]:
    """While it lasts, Python goes from one thread to another as often as it can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def keep_together(models: list[ModelPatcher]) -> list[ModelPatcher]:
    """Clones whose runs begin, call the model, and end at the same time.

    ComfyUI does not sample twice on one model at once. A run that ends earlier would take
    ``current_patcher`` from the model of the other one, and two loads at once spoil its list of
    what was patched, so loads take turns.
    """
    barrier = Barrier(len(models), timeout=SECONDS)
    loading = Lock()

    def load_in_turn(executor: Any, *args: Any, **kwargs: Any) -> Any:
        with loading:
            return executor(*args, **kwargs)

    def wait_at_both_ends(executor: Any, *args: Any, **kwargs: Any) -> Any:
        barrier.wait()
        try:
            return executor(*args, **kwargs)
        finally:
            barrier.wait()

    def wait_before(executor: Any, *args: Any, **kwargs: Any) -> Any:
        barrier.wait()
        return executor(*args, **kwargs)

    clones = [model.clone() for model in models]
    for clone in clones:
        clone.add_wrapper_with_key(WrappersMP.PREPARE_SAMPLING, "together", load_in_turn)
        clone.add_wrapper_with_key(WrappersMP.SAMPLER_SAMPLE, "together", wait_at_both_ends)
        clone.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "together", wait_before)
    return clones
