"""The settings that are compared: how many tokens each leaves, whoever chooses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from token_merge.tome_core.schedule import EARLY

RATIO = 0.5
TARGETS = (
    "queries, downsampled keys and values",
    "queries, keys and values",
    "queries",
)


@dataclass(frozen=True)
class Setting:
    """Token counts that every variant of the setting gives to attention.

    ratio, target: of tokens merged away and from which sequences. factor: keys and values
    downsampled in place of merged, by this factor a side.
    """

    name: str
    target: str
    ratio: float = 0.0
    factor: int = 1

    def remaining(self, height: int, width: int, frames: int = 1) -> tuple[int, int]:
        """(queries, keys and values) left on a grid of this size."""
        tokens = frames * height * width
        merged = tokens - int(tokens * self.ratio)
        downsampled = frames * (height // self.factor) * (width // self.factor)
        queries = merged if "queries" in self.target else tokens
        keys = merged if "keys" in self.target else tokens
        return queries, keys if self.factor == 1 else downsampled


MERGE = Setting(f"merge 0.2, {TARGETS[0]}", TARGETS[0], ratio=0.2, factor=2)
"""This is Token Merge with its defaults."""
MERGE_ALL, MERGE_QUERIES = (
    Setting(f"merge {RATIO}, {target}", target, ratio=RATIO) for target in TARGETS[1:]
)
DOWNSAMPLE = Setting("downsample ×2, keys and values", "keys and values", factor=2)


def share_early(steps: int) -> float:
    """Of an even schedule's steps, the share that transformers have exact by default."""
    return sum(step < EARLY * steps for step in range(steps)) / steps


def is_finest(extra_options: dict[str, Any], finest: int) -> bool:
    """Whether a block's tokens lie at the finest resolution that has self-attention.

    finest: the latent's side over that resolution's side, 1 on SD 1.5 and 2 on SDXL.
    """
    latent = extra_options["original_shape"][-2]
    return round(latent / extra_options["activations_shape"][-2]) <= finest
