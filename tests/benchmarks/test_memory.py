"""The peak is the most memory in use at once, not the sum of what was taken."""

from __future__ import annotations

import torch

from benchmarks.speed.memory import peak_memory


def test_peak_counts_what_is_alive_at_once() -> None:
    with peak_memory(torch.device("cpu")) as peak:
        first = torch.ones(1000, 1000)  # 4 MB
        second = first + first
        del first
        third = second + second
        del second, third
    assert 8_000_000 <= peak.bytes < 8_100_000


def test_what_was_there_before_does_not_count() -> None:
    before = torch.ones(1000, 1000)
    with peak_memory(torch.device("cpu")) as peak:
        torch.ones(100)
        del before
    assert peak.bytes < 10_000
