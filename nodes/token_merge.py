"""The Token Merge nodes: similar tokens are merged before attention, and copied back after it."""

from __future__ import annotations

from comfy_api.latest import io
from typing_extensions import override

from ..tome_core.merging.settings import (
    MATCHINGS,
    MAX_RATIO,
    MAX_STRIDE,
    TARGET_CHOICES,
    MergeSettings,
)
from .common import (
    CHOICES,
    ReductionNode,
    exact_early_steps,
    local_window,
    max_tokens,
    model_input,
    percent_inputs,
    pick,
    proportional_attention,
    reduce_small_layers,
    seed_input,
)

ALIASES = ("tome", "tomesd", "token merging")


def list_inputs() -> list[io.Input]:
    """In the order of the Advanced node."""
    return [
        model_input(),
        io.Float.Input(
            "ratio",
            default=MergeSettings.ratio,
            min=0.0,
            max=MAX_RATIO,
            step=0.01,
            tooltip="Share of the tokens that is merged away. A higher ratio is faster and loses "
            "more detail. With the default inputs, below 0.125 it changes nothing, and above 0.75 "
            "it acts as 0.75.",
        ),
        io.Combo.Input(
            "max_downsample",
            options=list(CHOICES["max_downsample"]),
            default="auto",
            tooltip="UNets: acts on the layers whose picture is downsampled at most this much. "
            "auto: the finest resolution at which this model has self-attention (1 on SD 1.5, 2 "
            "on SDXL). Higher values also reach coarser layers: little speed, more change.",
        ),
        io.Combo.Input(
            "target",
            options=list(TARGET_CHOICES),
            default=MergeSettings.target,
            tooltip="What is merged in self-attention. queries, downsampled keys and values: "
            "merges the queries, and keeps one key and value of each cell, a different one in each "
            "step. This has the smallest error. queries, keys and values: merges all three, as "
            "ToMe for SD does. keys and values: every token keeps its own query. queries: every "
            "token can still be attended to.",
        ),
        *percent_inputs("merging"),
        _stride("stride_x", "Width"),
        _stride("stride_y", "Height"),
        _switch(
            "random_destinations",
            "dst is a random token of its cell, new in every step and layer, instead of always "
            "the first one. Avoids grid patterns. Acts with matching local and global.",
        ),
        seed_input("the tokens and groups that are random"),
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
            default=MergeSettings.matching,
            tooltip="How similar tokens are found. local: among neighbours, fast at any size. "
            "global: among all tokens (ToMe for SD). k-th: dst is every k-th token, k = stride_x "
            "* stride_y. random: dst tokens are random.",
        ),
        max_tokens("Where ratio would keep more tokens than this in a layer, more are merged."),
        proportional_attention(
            "Keys and values: ",
            "Without this, merged tokens lose weight to the others, and on UNets a merged key is "
            "the mean of the keys of its tokens, as in the first ToMe for SD.",
        ),
        local_window(
            "Transformers, with target 'queries, downsampled keys and values', matching local and "
            "proportional_attention: side, in tokens, of the neighbourhood around each query in "
            "which it reads all keys for itself. Merged queries share only what is farther away. "
            "auto: 12. off: they share everything, which makes the error much larger."
        ),
        reduce_small_layers(),
        exact_early_steps(),
    ]


def _stride(name: str, side: str) -> io.Input:
    return io.Int.Input(
        name,
        default=getattr(MergeSettings, name),
        min=1,
        max=MAX_STRIDE,
        tooltip=f"{side} of a cell in tokens. Each cell keeps one destination token (dst), and one "
        "key and value where these are downsampled.",
    )


def _switch(name: str, tooltip: str) -> io.Input:
    return io.Boolean.Input(name, default=getattr(MergeSettings, name), tooltip=tooltip)


class TokenMerge(ReductionNode):
    settings = MergeSettings

    @classmethod
    @override
    def define_schema(cls) -> io.Schema:
        return cls.make_schema(
            "TokenMerge",
            "Token Merge (ToMe)",
            "Makes a model faster: merges similar tokens before attention, lets them read fewer "
            "keys and values, and copies the result back to each of them (ToMe).",
            ALIASES,
            pick(list_inputs(), "model", "ratio", "exact_early_steps"),
        )


class TokenMergeAdvanced(ReductionNode):
    settings = MergeSettings

    @classmethod
    @override
    def define_schema(cls) -> io.Schema:
        return cls.make_schema(
            "TokenMergeAdvanced",
            "Token Merge (Advanced)",
            "Token Merge with every input, among them those of the published methods: ToMe for "
            "Stable Diffusion and ToMe.",
            ALIASES,
            list_inputs(),
        )
