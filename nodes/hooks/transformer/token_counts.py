"""How many tokens each input of a model call becomes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

SHAPES_KEY = "latent_shapes"
"""ComfyUI gives the shapes of latents that are packed into one under this key, the video's first.
"""


def list_shapes(latent: Tensor, conditioning: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """The shapes of all latents of the call, the picture's first."""
    packed = conditioning.get(SHAPES_KEY) or ()
    return [tuple(shape) for shape in (packed if len(packed) > 1 else [latent.shape])]


def count_prompt(prompt: Tensor | None) -> int:
    """prompt: (B, T, D)."""
    return prompt.shape[1] if prompt is not None and prompt.ndim > 1 else 0


def count_sides(shape: tuple[int, ...], patch: tuple[int, int, int]) -> tuple[int, int, int]:
    """Frames, rows and columns of tokens; a side that the patch does not divide is padded."""
    sides = (*[1] * (5 - len(shape)), *shape[2:])
    frames, height, width = (
        math.ceil(side / size) for side, size in zip(sides, patch, strict=True)
    )
    return frames, height, width


def count_references(references: list[Any], patch: tuple[int, int, int]) -> int:
    """Tokens of all these latents, or lists of latents; one of shape (B, N, C) has N."""
    latents: list[Tensor] = []
    for reference in references:
        latents += reference if isinstance(reference, list | tuple) else [reference]
    shapes = [tuple(latent.shape) for latent in latents]
    return sum(
        shape[1] if len(shape) == 3 else math.prod(count_sides(shape, patch)) for shape in shapes
    )


def count_beside(reference: Tensor | None, width: int, columns: int) -> int:
    """Tokens that a reference adds to each row; one that lies on both is the picture's."""
    if reference is None:
        return 0
    return math.ceil((width + reference.shape[-1]) / columns) - math.ceil(width / columns)


def count_sized(latent: Tensor, sizes: tuple[tuple[int, int, int], ...]) -> int:
    """Tokens of all sizes; cells that do not fill a token are left out."""
    height, width = latent.shape[-2:]
    return sum(frames * (height // rows) * (width // columns) for frames, rows, columns in sizes)


def count_guides(places: Tensor | None) -> int:
    """Tokens at the end of the latent that are guides. places: theirs, (B, 3, G, 2)."""
    return 0 if places is None else places.shape[2]


def count_sounds(shapes: Sequence[tuple[int, ...]], reference: Any) -> list[int]:
    """Tokens of each latent beside the video, (B, C, T, frequencies): one for each time.

    reference: the tokens of another sound before them, alone where there is no such latent; or
    None.
    """
    before = reference["tokens"].shape[1] if reference else 0
    return [before + shape[2] for shape in shapes] or [before]
