"""Peak memory of a device."""

from __future__ import annotations

import torch


def forget_peak(device: torch.device) -> None:
    """The next ``read_peak`` is of what is allocated from now on."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def read_peak(device: torch.device) -> int | None:
    """Bytes that torch had allocated at most, weights included; None where it does not count."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
