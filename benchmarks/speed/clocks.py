"""Time on the device that computes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")

Clock = Callable[[torch.device], float]


def seconds_now(device: torch.device) -> float:
    """Wall-clock seconds once the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def thread_seconds_now(device: torch.device) -> float:
    """Seconds that the calling thread has computed: what others do on the machine counts less.

    Read it within ``one_thread``. device: work that it has not done yet does not count.
    """
    return time.thread_time()


@contextmanager
def one_thread() -> Iterator[None]:
    """With one thread of PyTorch's."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Stopwatch:
    """Adds up the time that functions take on a device, without making it wait in between."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._seconds = 0.0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def timed(self, function: Callable[..., Result]) -> Callable[..., Result]:
        """``function``, its time added up here."""

        def on_cpu(*args: Any, **kwargs: Any) -> Result:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._seconds += time.perf_counter() - start

        def on_cuda(*args: Any, **kwargs: Any) -> Result:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            try:
                return function(*args, **kwargs)
            finally:
                end.record()
                self._events.append((start, end))

        return on_cuda if self.device.type == "cuda" else on_cpu

    def seconds(self) -> float:
        """The sum so far; waits for the device."""
        if self._events:
            torch.cuda.synchronize(self.device)
        milliseconds = sum(start.elapsed_time(end) for start, end in self._events)
        return self._seconds + milliseconds / 1000
