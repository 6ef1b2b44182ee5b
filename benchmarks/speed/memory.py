"""Peak memory of what runs, above what was in use before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.profiler import ProfilerActivity, profile


class Peak:
    """bytes: the most that torch's allocator held at once, weights and inputs not counted."""

    bytes = 0


@contextmanager
def peak_memory(device: torch.device) -> Iterator[Peak]:
    """Measures what runs inside; known when it ends.

    On a CPU from the profiler's record of every allocation: exact for torch's tensors, blind to
    the scratch space of its matrix libraries. The process's own peak cannot be reset.
    """
    peak = Peak()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        yield peak
        peak.bytes = torch.cuda.max_memory_allocated(device) - before
        return
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        yield peak
    in_use = 0
    record = profiler.profiler
    assert record is not None and record.kineto_results is not None
    events = [event for event in record.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(events, key=lambda event: event.start_ns()):
        in_use += event.nbytes()
        peak.bytes = max(peak.bytes, in_use)
