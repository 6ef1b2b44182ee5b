"""One way to run a model, and the patches that ours are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, get_args

from comfy.model_patcher import ModelPatcher
from token_merge.nodes.hooks.transformer.attention import Block
from token_merge.tome_core.merge_settings import Target

from .. import ours
from ..settings import MERGE, Setting

PictureKind = Literal["ours", "peer", "candidate", "yardstick"]


class Patch(Protocol):
    """How a model is changed. seed: of what a node draws, where it draws anything."""

    def __call__(self, model: ModelPatcher, /, *, seed: int = 0) -> ModelPatcher: ...


FEWER_KEYS: Target
ALL: Target
KEYS: Target
QUERIES: Target
FEWER_KEYS, ALL, KEYS, QUERIES = get_args(Target)


WINDOWS: dict[str, dict[str, Any]] = {
    "last 40 % exact": {"end_percent": 0.6},
    "first 40 % exact": {"start_percent": 0.4},
    "first 20 % exact": {"start_percent": 0.2},
}
"""Inputs of both nodes, by which part of the schedule they leave exact."""

MERGE_BY_DEFAULT: Patch = partial(ours.token_merge, setting=MERGE)

SEARCHED = ((0.3, 1.41), (0.3, 2), (0.5, 2))
"""Ratio of the queries and factor of the keys. A ratio of 0.4 lies between 0.3 and 0.5."""


@dataclass(frozen=True)
class PictureVariant:
    """One way to run the model.

    kind: a candidate is what the nodes do not offer, a yardstick what people would do instead.
    published: (setting, name) under which benchmarks/speed/results has its speed-up on SD 1.5, if
    it has. pictures: how many whole pictures are made at most, which takes long; single predictions
    are always made, but not of yardsticks. steps: None for as many as plain takes.
    """

    name: str
    kind: PictureKind
    patch: Patch
    published: tuple[str, str] | None = None
    pictures: int = 64
    steps: int | None = None


Variants = Sequence[PictureVariant]


def seedless(patch: Callable[[ModelPatcher], ModelPatcher]) -> Patch:
    """Of a node that draws nothing."""
    return lambda model, *, seed=0: patch(model)


def merge(ratio: float = 0.5, target: str = ALL, **inputs: Any) -> Patch:
    """Token Merge of ``target``, by default of queries, keys and values. inputs: of the node."""
    return partial(ours.token_merge, setting=Setting("", target, ratio=ratio), **inputs)


def downsample(factor: float, **inputs: Any) -> Patch:
    """Token Downsample without local windows, drawn for all queries alike. inputs: of the node."""
    simple = {"method": "stratified", "local_window": "off"}
    return partial(ours.apply, "TokenDownsampleAdvanced", factor=float(factor), **(simple | inputs))


def windows(factor: float, side: int = Block.local_window, **inputs: Any) -> Patch:
    """Token Downsample with local windows of ``side`` tokens."""
    chosen = {"method": "interleaved", "local_window": str(side)} | inputs
    return downsample(factor, **chosen)


def chain(first: Patch, second: Patch) -> Patch:
    """Both, one after the other."""
    return lambda model, *, seed=0: second(first(model, seed=seed), seed=seed)


def both(ratio: float, factor: float, **inputs: Any) -> Patch:
    """Queries merged, keys and values downsampled. inputs: of Token Downsample."""
    return chain(merge(ratio, QUERIES), downsample(factor, **inputs))


def queries_and_interleaved(searched: Sequence[tuple[float, float]]) -> list[PictureVariant]:
    """Queries merged, and keys that each group of queries draws for itself.

    searched: ratio of the queries and factor of the keys.
    """
    return [
        PictureVariant(
            f"queries merged {ratio}, Downsample ×{factor}, interleaved",
            "ours",
            both(ratio, factor, method="interleaved"),
            pictures=16,
        )
        for ratio, factor in searched
    ]


def other_balances() -> list[PictureVariant]:
    """Token Merge with about the pairs of its default, all taken from the keys; and fewer merged
    queries that read all keys, whose error is the least that such queries have.
    """
    return [
        PictureVariant("Token Merge 0.75, keys and values", "ours", merge(0.75, KEYS), pictures=16),
        PictureVariant("Token Merge 0.3, queries", "ours", merge(0.3, QUERIES), pictures=16),
    ]


def partly_exact(parts: dict[str, dict[str, Any]]) -> list[PictureVariant]:
    """Both nodes with inputs that leave something exact. parts: the inputs, by what that is."""
    nodes: dict[str, Callable[..., Patch]] = {
        "Token Downsample ×4": partial(downsample, 4),
        "Token Merge 0.5": merge,
    }
    return [
        PictureVariant(f"{name}, {words}", "ours", make(**inputs), pictures=16)
        for name, make in nodes.items()
        for words, inputs in parts.items()
    ]
