"""How far pictures and clips are from those of the unpatched model."""

from __future__ import annotations

from torch import Tensor


def squared_error(pictures: Tensor, others: Tensor) -> Tensor:
    """Mean over each picture, in [0, 1]: (B, 3, ..., H, W) twice -> (B,)."""
    return (pictures - others).square().flatten(1).mean(1)


def flicker(clips: Tensor, unpatched: Tensor) -> Tensor:
    """Squared error of what changes from frame to frame, mean over each clip.

    0 where the clips differ by a picture that stands still. (B, 3, F, H, W) twice -> (B,).
    """
    return squared_error(clips.diff(dim=2), unpatched.diff(dim=2))
