"""CUDA graphs: a call is captured once, and replayed without the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from .clocks import seconds_now

Result = TypeVar("Result")


def time_replays(
    call: Callable[[], Result], device: torch.device, count: int
) -> tuple[Result, float]:
    """The result of the last of ``count`` replays of ``call``, and the seconds of one.

    ``call`` is made once before the capture: what it computes once and keeps must not be captured.
    On a CPU, which has no such graphs, ``call`` is repeated.
    Raises RuntimeError where ``call`` waits for the GPU.
    """
    result = call()
    again: Callable[[], object] = call
    if device.type == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = call()
        again = graph.replay
        again()
    start = seconds_now(device)
    for _ in range(count):
        again()
    return result, (seconds_now(device) - start) / count
