"""Inputs that both nodes have, and how inputs become settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from comfy_api.latest import io

from ..tome_core.schedule import PercentWindow
from ..tome_core.settings import MAX_BLOCKS, MAX_SEED, MAX_TOKENS, TransformerSettings

Kind = TypeVar("Kind")


def make_settings(kind: Callable[..., Kind], inputs: dict[str, Any]) -> Kind:
    """Settings of ``kind`` from the inputs of a node; defaults for those that are missing.

    Raises ValueError naming the input, its value and what is accepted.
    """
    rest = dict(inputs)

    def take(**names: str) -> dict[str, Any]:
        return {field: rest.pop(name) for field, name in names.items() if name in rest}

    window = PercentWindow(**take(start="start_percent", end="end_percent"))
    blocks = take(keep_first_blocks="keep_first_blocks", keep_last_blocks="keep_last_blocks")
    return kind(window=window, transformer=TransformerSettings(**blocks), **rest)


def explain_refusal(kind: Callable[..., object], **values: object) -> str | None:
    """Why ``kind`` refuses these values, None where it does not.

    A value that comes over a link is None before the graph runs; ``execute`` checks it.
    """
    if None in values.values():
        return None
    try:
        kind(**values)
    except ValueError as refusal:
        return str(refusal)
    return None


def percent_window(what: str) -> list[io.Input]:
    """``start_percent`` and ``end_percent`` of ``what``, as ComfyUI's own nodes have them."""
    return [
        io.Float.Input(
            "start_percent",
            default=0.0,
            min=0.0,
            max=1.0,
            step=0.001,
            tooltip=f"Where in the sampling schedule {what} starts. Above 0, the first steps run "
            "on the plain model. The first steps decide what the picture shows.",
        ),
        io.Float.Input(
            "end_percent",
            default=1.0,
            min=0.0,
            max=1.0,
            step=0.001,
            tooltip=f"Where in the sampling schedule {what} ends. Below 1, the last steps run on "
            "the plain model.",
        ),
    ]


def optional_whole(name: str, most: int, tooltip: str) -> io.Input:
    """A whole number from 0. Optional: workflows saved before it was there have no value for it."""
    return io.Int.Input(
        name, default=0, min=0, max=most, optional=True, advanced=True, tooltip=tooltip
    )


def token_limits(limit: str) -> list[io.Input]:
    """``max_tokens``, which ``limit`` explains, and ``min_tokens``."""
    return [
        optional_whole("max_tokens", MAX_TOKENS, f"For very large pictures. {limit} 0: no limit."),
        optional_whole(
            "min_tokens", MAX_TOKENS, "Layers with fewer tokens than this are skipped. 0: none."
        ),
    ]


def transformer_inputs() -> list[io.Input]:
    """The fields of ``TransformerSettings``."""
    return [
        optional_whole(
            "keep_first_blocks",
            MAX_BLOCKS,
            "Transformers: this many of the first blocks are skipped. They decide the layout.",
        ),
        optional_whole(
            "keep_last_blocks",
            MAX_BLOCKS,
            "Transformers: this many of the last blocks are skipped. They decide the detail.",
        ),
    ]


def seed_input(what: str, *, optional: bool = False) -> io.Input:
    """The seed of ``what`` a node draws; it never changes by itself between two runs."""
    return io.Int.Input(
        "seed",
        default=0,
        min=0,
        max=MAX_SEED,
        control_after_generate=False,
        optional=optional,
        advanced=True,
        tooltip=f"Seed of {what}. It is independent of the sampler's seed.",
    )


def proportional_attention(where: str, without: str) -> io.Input:
    """Whether a key weighs as much as the tokens it stands for."""
    return io.Boolean.Input(
        "proportional_attention",
        default=True,
        optional=True,
        advanced=True,
        tooltip=f"{where}a key that stands for several tokens gets the weight of all of them. "
        f"{without}",
    )
