"""Waiting for a device."""

from __future__ import annotations

from torch import Tensor


def wait_for(x: Tensor) -> None:
    """Wait until the device has done all its work so far.

    To do so, one number of a result is read. Unlike torch.cuda.synchronize, this works on
    every kind of device.
    """
    first = x.unbind()[0] if x.is_nested else x
    if first.numel():
        first[(0,) * first.ndim].item()
