"""The inputs of Token Merge, from which both of its nodes take theirs."""

from __future__ import annotations

from typing import Any

from comfy_api.latest import io

from ..tome_core.merge_settings import (
    MATCHINGS,
    MAX_RATIO,
    MAX_REFRESH_STEPS,
    MAX_STRIDE,
    TARGETS,
    MergeSettings,
)
from . import inputs

DOWNSAMPLINGS = {"auto": None, "1": 1, "2": 2, "4": 4, "8": 8}
"""The choices of ``max_downsample`` as settings."""


def read(values: dict[str, Any]) -> MergeSettings:
    """Settings from the values of inputs; defaults for those that a node lacks."""
    resolved = inputs.resolve_choice(values, "max_downsample", DOWNSAMPLINGS)
    return inputs.make_settings(MergeSettings, inputs.resolve_window(resolved))


def list_inputs() -> list[io.Input]:
    """In the order of the Advanced node."""
    return [
        inputs.model_input(),
        io.Float.Input(
            "ratio",
            default=0.2,
            min=0.0,
            max=MAX_RATIO,
            step=0.01,
            tooltip="Share of the tokens that is merged away. A higher ratio is faster and loses "
            "more detail. Acts as at most 1 - 1 / (stride_x * stride_y): 0.75 with strides of 2.",
        ),
        io.Combo.Input(
            "max_downsample",
            options=list(DOWNSAMPLINGS),
            default="auto",
            tooltip="UNets: acts on the layers whose picture is downsampled at most this much. "
            "auto: the finest resolution at which this model has self-attention (1 on SD 1.5, 2 "
            "on SDXL). Higher values also reach coarser layers: little speed, more change.",
        ),
        io.Combo.Input(
            "target",
            options=list(TARGETS),
            default=TARGETS[0],
            tooltip="What is merged in self-attention. The first merges the queries alone, and of "
            "keys and values it keeps one of each cell, a different one in each step. It stays "
            "nearest to the plain picture. The second merges all three, as ToMe for SD does. With "
            "keys and values only, every token keeps its own query. With queries only, every token "
            "can still be attended to.",
        ),
        *inputs.percent_window("merging"),
        _stride("stride_x", "Width"),
        _stride("stride_y", "Height"),
        _switch(
            "random_destinations",
            "dst is a random token of its cell, new in every step and layer, instead of always "
            "the first one. Avoids grid patterns.",
            default=True,
        ),
        inputs.seed_input("the tokens and groups that are random"),
        _switch(
            "merge_cross_attention",
            "UNets: also merges the queries of cross-attention, the attention to the prompt. "
            "Little speed, more change.",
        ),
        _switch(
            "merge_mlp",
            "UNets: also merges the tokens of the MLP after attention. Faster, but loses fine "
            "detail.",
        ),
        io.Combo.Input(
            "matching",
            options=list(MATCHINGS),
            default=MATCHINGS[0],
            tooltip="How similar tokens are found. local: among neighbours, fast at any size. "
            "global: among all tokens (ToMe for SD). k-th: dst is every k-th token, k = stride_x "
            "* stride_y. random: dst tokens are random. toma: tiles with soft weights (ToMA).",
        ),
        io.Int.Input(
            "refresh_steps",
            default=0,
            min=0,
            max=MAX_REFRESH_STEPS,
            tooltip="0: every layer looks for similar tokens in every step. 1: the layers of one "
            "resolution share what the first of them found. 2 or more: and keep it for that many "
            "steps.",
        ),
        inputs.max_tokens(
            "Where ratio would keep more tokens than this in a layer, more are merged."
        ),
        inputs.proportional_attention(
            "Keys and values: ",
            "Without this, merged tokens lose weight to the others, and UNets attend to the mean "
            "of their keys, as the first ToMe for SD does.",
        ),
        inputs.local_window(
            "Transformers, with the first target: side, in tokens, of the neighbourhood around "
            "each query in which it reads all keys for itself. Merged queries share only what is "
            "farther away. auto: 12. off: they share everything, far from the plain picture."
        ),
    ]


def _stride(name: str, side: str) -> io.Input:
    return io.Int.Input(
        name,
        default=2,
        min=1,
        max=MAX_STRIDE,
        tooltip=f"{side} of a cell in tokens. Each cell keeps one destination token (dst), and one "
        "key and value where these are downsampled.",
    )


def _switch(name: str, tooltip: str, *, default: bool = False) -> io.Input:
    return io.Boolean.Input(name, default=default, tooltip=tooltip)
