"""Matrices as 8-bit numbers with a scale for each row: a quarter of single precision.

So a second model has room beside the one that it was made from.
"""

from __future__ import annotations

from torch import Tensor

SCALE = ".row_scale"
"""Ends the name of a matrix's scales."""
MOST = 127


def pack(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as int8 and their scales as float32, one a row; the others as they are."""
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim < 2:
            packed[name] = weight
            continue
        rows = weight.detach().float()
        scale = rows.flatten(1).abs().amax(1) / MOST
        scale = scale.where(scale > 0, 1.0)  # of a row of zeros
        packed[name] = (rows / _along(scale, rows)).round().char()
        packed[name + SCALE] = scale
    return packed


def unpack(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights that ``pack`` was given, nearly; what has no scale as it is."""
    return {
        name: tensor * _along(tensors[name + SCALE], tensor) if name + SCALE in tensors else tensor
        for name, tensor in tensors.items()
        if not name.endswith(SCALE)
    }


def _along(scale: Tensor, rows: Tensor) -> Tensor:
    return scale.view(-1, *[1] * (rows.ndim - 1))
