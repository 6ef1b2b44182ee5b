"""The fixed captions and seeds that every variant makes pictures or clips of."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..trained import clips, codec, layouts, scenes, text, weights
from ..trained.motion import FRAMES
from ..trained.places import WEIGHTS
from .regimes import Regime
from .sampling import Batch, square

ROWS = 4
"""One model call has so many pictures."""
SLIDES = " sliding "
"""A caption with this word is of a scene in which all that is seen moves in one direction."""


def make_pictures(model: str, count: int, tokens: int, first: int = 0) -> list[Batch]:
    """Picture n has the noise of seed n. model: by its name. tokens: a side. first: number of the
    first picture.
    """
    stored = weights.read(WEIGHTS[model])
    captions = list_captions(stored.facts, first + count)[first:]
    return _split(captions, square(tokens, stored.shape.channels), first)


def list_captions(facts: dict[str, Any], count: int) -> list[str]:
    """Of pictures that a model was not trained on. facts: what its file says of itself."""
    if "subjects" in facts:
        return layouts.list_held_out(count, facts["subjects"])
    return scenes.list_held_out(count)


def make_clips(count: int, tokens: int, regime: Regime, first: int = 0) -> list[Batch]:
    """The same of clips. Where ``regime`` denoises in part, drawn ones that slide are made anew."""
    drawn = clips.draw_held_out(first + count, SLIDES if regime.is_partial else "")[first:]
    captions = [scene.caption for scene in drawn]
    starts = None
    if regime.is_partial:
        side = tokens * codec.PIXELS_PER_TOKEN
        starts = codec.split_bands(clips.crop(drawn, side, torch.Generator().manual_seed(0)))
    return _split(captions, (codec.CHANNELS, FRAMES, tokens, tokens), first, starts)


def _split(
    captions: list[str], shape: tuple[int, ...], first: int, starts: Tensor | None = None
) -> list[Batch]:
    """first: seed of the first. starts: (count, *shape), latents that are made anew."""
    encoder = text.build_encoder()
    prompts = torch.stack([text.encode(encoder, caption) for caption in captions])
    nothing = text.encode(encoder, "")[None]
    return [
        Batch(
            some,
            nothing,
            tuple(range(first + start, first + start + len(some))),
            shape,
            None if starts is None else starts[start : start + len(some)],
            tuple(captions[start : start + len(some)]),
        )
        for start, some in zip(range(0, len(captions), ROWS), prompts.split(ROWS), strict=True)
    ]
