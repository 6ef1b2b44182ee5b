"""The fixed captions and seeds that every variant makes pictures or clips of."""

from __future__ import annotations

import torch

from ..trained import layouts, text, weights
from ..trained.places import WEIGHTS
from ..trained.wan import FRAMES
from .sampling import Batch

ROWS = 4
"""One model call has so many pictures or clips."""


def make_batches(model: str, count: int, tokens: int) -> list[Batch]:
    """Captions that the model was not trained on; the n-th has the noise of seed n.

    model: by its name. tokens: a side.
    """
    stored = weights.read(WEIGHTS[model])
    moving = stored.shape.dimensions == 3
    captions = layouts.list_held_out(count, stored.facts["subjects"], moving)
    shape = (stored.shape.channels, *[FRAMES] * moving, tokens, tokens)
    encoder = text.build_encoder()
    prompts = torch.stack([text.encode(encoder, caption) for caption in captions])
    nothing = text.encode(encoder, "")[None]
    seeds = tuple(range(count))
    return [
        Batch(
            some,
            nothing,
            seeds[start : start + ROWS],
            shape,
            tuple(captions[start : start + ROWS]),
            start // ROWS,
        )
        for start, some in zip(range(0, count, ROWS), prompts.split(ROWS), strict=True)
    ]
