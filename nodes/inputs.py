"""Inputs that both nodes have."""

from __future__ import annotations

from comfy_api.latest import io

from ..tome_core.settings import MAX_BLOCKS, MAX_SEED, MAX_TOKENS, TransformerSettings


def percent_window(what: str) -> list[io.Input]:
    """``start_percent`` and ``end_percent`` of ``what``, as ComfyUI's own nodes have them."""
    return [
        io.Float.Input(
            "start_percent",
            default=0.0,
            min=0.0,
            max=1.0,
            step=0.001,
            tooltip=f"Share of the sampling schedule at which {what} starts. "
            "Higher values leave the first steps exact, which settle what the picture becomes.",
        ),
        io.Float.Input(
            "end_percent",
            default=1.0,
            min=0.0,
            max=1.0,
            step=0.001,
            tooltip=f"Share of the sampling schedule at which {what} ends. "
            "Lower values leave the last steps exact.",
        ),
    ]


def token_limits(budget: str) -> list[io.Input]:
    """``max_tokens``, which ``budget`` explains, and ``min_tokens``.

    Optional and last: workflows saved before they were there have no value for them.
    """
    return [
        io.Int.Input(
            "max_tokens",
            default=0,
            min=0,
            max=MAX_TOKENS,
            optional=True,
            advanced=True,
            tooltip=f"Token budget: {budget} For very large pictures. 0: no limit.",
        ),
        io.Int.Input(
            "min_tokens",
            default=0,
            min=0,
            max=MAX_TOKENS,
            optional=True,
            advanced=True,
            tooltip="Layers with fewer tokens than this are left alone. 0: none.",
        ),
    ]


def transformer_inputs() -> list[io.Input]:
    """The fields of ``TransformerSettings``. Optional and late, as ``token_limits``."""
    defaults = TransformerSettings()
    return [
        io.Int.Input(
            "keep_first_blocks",
            default=defaults.keep_first_blocks,
            min=0,
            max=MAX_BLOCKS,
            optional=True,
            advanced=True,
            tooltip="Transformers: this many of the first blocks are left whole. "
            "They settle the layout.",
        ),
        io.Int.Input(
            "keep_last_blocks",
            default=defaults.keep_last_blocks,
            min=0,
            max=MAX_BLOCKS,
            optional=True,
            advanced=True,
            tooltip="Transformers: this many of the last blocks are left whole. "
            "They settle the detail.",
        ),
    ]


def seed_of(what: str, *, optional: bool = False) -> io.Input:
    """The seed of ``what`` a node draws; it never changes by itself between two runs."""
    return io.Int.Input(
        "seed",
        default=0,
        min=0,
        max=MAX_SEED,
        control_after_generate=False,
        optional=optional,
        advanced=True,
        tooltip=f"Seed of {what}. Independent of the sampler's seed.",
    )


def proportional_attention(where: str, without: str) -> io.Input:
    """Whether a key weighs as much as the tokens it stands for. Optional and last."""
    return io.Boolean.Input(
        "proportional_attention",
        default=True,
        optional=True,
        advanced=True,
        tooltip=f"{where}a token that stands for several weighs as much as they did. {without}",
    )
