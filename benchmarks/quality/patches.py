"""One way to run a model, and the patches that ours are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

from comfy.model_patcher import ModelPatcher
from token_merge.nodes.hooks.transformer.attention import LOCAL_WINDOW

from .. import ours
from ..settings import MERGE_ALL

ALL_STEPS = "all steps"
"""A name ends so where the early steps are reduced too."""
DOWNSAMPLE_BY_DEFAULT = "Token Downsample ×2 (the default)"
MERGE_BY_DEFAULT = "Token Merge 0.2 (the default)"
PictureKind = Literal["ours", "peer", "yardstick"]


class Patch(Protocol):
    """How a model is changed. seed: of what a node draws, where it draws anything."""

    def __call__(self, model: ModelPatcher, /, *, seed: int = 0) -> ModelPatcher: ...


@dataclass(frozen=True)
class PictureVariant:
    """One way to run the model. kind: a yardstick is what people would do instead of using our
    nodes. steps: None for as many as the unpatched model takes.
    """

    name: str
    kind: PictureKind
    patch: Patch
    steps: int | None = None


def seedless(patch: Callable[[ModelPatcher], ModelPatcher]) -> Patch:
    """Of a node that draws nothing."""
    return lambda model, *, seed=0: patch(model)


def merge(target: str = MERGE_ALL.target, **inputs: Any) -> Patch:
    """Token Merge in all steps, by default of queries, keys and values. inputs: of the node."""
    chosen = {"ratio": MERGE_ALL.ratio} | inputs
    return partial(ours.apply_in_all_steps, "TokenMergeAdvanced", target=target, **chosen)


def downsample(factor: float, **inputs: Any) -> Patch:
    """Token Downsample in all steps, without local windows, drawn for all queries alike. inputs: of
    the node.
    """
    chosen = {"method": "stratified", "local_window": "off"} | inputs
    return partial(
        ours.apply_in_all_steps, "TokenDownsampleAdvanced", factor=float(factor), **chosen
    )


def windows(factor: float, **inputs: Any) -> Patch:
    """Token Downsample as transformers have it by default: local windows, early steps exact."""
    side = str(LOCAL_WINDOW)
    default = {"method": "interleaved", "local_window": side, "exact_early_steps": True}
    return downsample(factor, **(default | inputs))


def chain(first: Patch, second: Patch) -> Patch:
    """Both, one after the other."""
    return lambda model, *, seed=0: second(first(model, seed=seed), seed=seed)
