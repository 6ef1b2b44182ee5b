"""The inputs of Token Downsample, from which both of its nodes take theirs."""

from __future__ import annotations

from typing import Any

from comfy_api.latest import io

from ..tome_core.downsample_settings import MAX_FACTOR, METHODS, MIN_FACTOR, DownsampleSettings
from . import inputs


def read(values: dict[str, Any]) -> DownsampleSettings:
    """Settings from the values of inputs; defaults for those that a node lacks."""
    return inputs.make_settings(DownsampleSettings, inputs.resolve_window(values))


def list_inputs() -> list[io.Input]:
    """In the order of the Advanced node."""
    return [
        inputs.model_input(),
        _factor(
            "factor",
            "Divides the height and the width of the grid of keys and values, in the layers at "
            "the finest resolution at which this model has self-attention. 2 keeps a quarter of "
            "the keys and values. 1 changes nothing there.",
            default=2.0,
        ),
        _factor(
            "factor_level_2",
            "UNets: the same for the layers at the next coarser resolution. Useful for very large "
            "pictures.",
        ),
        io.Combo.Input(
            "method",
            options=list(METHODS),
            default=METHODS[0],
            tooltip="How keys and values are resampled. stratified keeps one token of each cell, "
            "a different one in each step until all were kept, so that errors do not add up. "
            "interleaved also splits the queries into groups, and each group reads keys of its "
            "own: nearer to the plain picture. nearest-exact always keeps the token in the "
            "middle.",
        ),
        inputs.local_window(
            "Side, in tokens, of the neighbourhood around each query in which all keys "
            "stay exact. Farther away fewer keys are read: 1 of every factor keys in the same "
            "rows or columns, or at the same places in other frames, and 1 of every 16 keys "
            "elsewhere. auto: 12 on transformers, off on UNets, where it does not pay.",
        ),
        *inputs.percent_window("downsampling"),
        inputs.max_tokens(
            "Where the factors would keep more keys and values than this in a layer they act on, "
            "the grid is downsampled more."
        ),
        _factor(
            "temporal_factor",
            "Video transformers: divides the number of frames of keys and values too. 1 keeps "
            "every frame.",
        ),
        inputs.proportional_attention(
            "Transformers: ", "Without this, the prompt gains weight against the picture."
        ),
        inputs.seed_input("the tokens and groups that are random"),
    ]


def _factor(name: str, tooltip: str, *, default: float = 1.0) -> io.Input:
    return io.Float.Input(
        name, default=default, min=MIN_FACTOR, max=MAX_FACTOR, step=0.25, tooltip=tooltip
    )
