"""The fixed captions and seeds that every variant makes pictures of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ..trained import codec, dataset, text
from .sampling import Batch, square

HELD_OUT_SEED = 1
"""Of pictures drawn for measuring alone: no picture of these was trained on."""
HELD_OUT = 256


@dataclass(frozen=True)
class Pairs:
    """captions, prompts: (count, 77, C), one a picture; picture n has seed n. drawn: (HELD_OUT, 3,
    H, W) in [0, 1], pictures as the model should make them. nothing: (1, 77, C), of no words.
    """

    captions: list[str]
    prompts: Tensor
    nothing: Tensor
    drawn: Tensor
    tokens: int

    @staticmethod
    def make(count: int, tokens: int, folder: Path, held_out: int = HELD_OUT) -> Pairs:
        data = dataset.load(folder, held_out, HELD_OUT_SEED)
        side = tokens * codec.PIXELS_PER_TOKEN
        drawn = data.crops(torch.arange(held_out), side, torch.Generator().manual_seed(0))
        clip = text.build_encoder()
        captions = data.captions[:count]
        prompts = torch.stack([text.encode(clip, caption) for caption in captions])
        nothing = text.encode(clip, "")[None]
        return Pairs(captions, prompts, nothing, drawn / 2 + 0.5, tokens)

    def batches(self, rows: int, most: int | None = None) -> list[Batch]:
        """Of ``rows`` pictures each, ``most`` in all."""
        count = min(len(self.captions), most if most is not None else len(self.captions))
        return [
            Batch(
                self.prompts[first : min(first + rows, count)],
                self.nothing,
                tuple(range(first, min(first + rows, count))),
                square(self.tokens),
            )
            for first in range(0, count, rows)
        ]
