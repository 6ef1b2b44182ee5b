"""The Token Merge node: merges similar tokens before attention, copies them back after it."""

from __future__ import annotations

from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy_api.latest import io

from ..tome_core.checks import check_choice
from ..tome_core.schedule import PercentWindow
from ..tome_core.settings import (
    MATCHINGS,
    MAX_RATIO,
    MAX_REFRESH_STEPS,
    MAX_STRIDE,
    TARGETS,
    Matching,
    MergeSettings,
)
from . import inputs
from .hooks.registry import attach

DOWNSAMPLINGS = {"auto": None, "1": 1, "2": 2, "4": 4, "8": 8}


class TokenMerge(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="TokenMerge",
            display_name="Token Merge",
            category="model/patch",
            description="Makes a model faster: merges similar tokens before attention and copies "
            "the result back to each of them (ToMe).",
            search_aliases=["tome", "tomesd", "token merging", "speed up", "faster"],
            inputs=[
                io.Model.Input("model", tooltip="The model to make faster."),
                io.Float.Input(
                    "ratio",
                    default=0.5,
                    min=0.0,
                    max=MAX_RATIO,
                    step=0.01,
                    tooltip="Share of the tokens that is merged away. A higher ratio is faster "
                    "and loses more detail. At most 1 - 1 / (stride_x * stride_y): 0.75 with "
                    "strides of 2.",
                ),
                io.Combo.Input(
                    "max_downsample",
                    options=list(DOWNSAMPLINGS),
                    default="auto",
                    tooltip="UNets: acts on the layers whose picture is downsampled at most this "
                    "much. auto: the finest resolution at which this model has self-attention "
                    "(1 on SD 1.5, 2 on SDXL). Higher values also reach coarser layers: little "
                    "speed, more change.",
                ),
                io.Combo.Input(
                    "target",
                    options=list(TARGETS),
                    default=TARGETS[0],
                    tooltip="What is merged in self-attention. All three saves most. With keys "
                    "and values only, every token keeps its own query. With queries only, every "
                    "token can still be attended to.",
                ),
                *inputs.percent_window("merging"),
                _stride("stride_x", "Width"),
                _stride("stride_y", "Height"),
                _switch(
                    "random_destinations",
                    "dst is a random token of its cell, new in every step and layer, instead of "
                    "always the first one. Avoids grid patterns.",
                    default=True,
                ),
                inputs.seed_input("the random dst tokens"),
                _switch(
                    "merge_cross_attention",
                    "UNets: also merges the queries of cross-attention, the attention to the "
                    "prompt. Little speed, more change.",
                ),
                _switch(
                    "merge_mlp",
                    "UNets: also merges the tokens of the MLP after attention. Faster, but loses "
                    "fine detail.",
                ),
                io.Combo.Input(
                    "matching",
                    options=list(MATCHINGS),
                    default=MATCHINGS[0],
                    optional=True,
                    advanced=True,
                    tooltip="How similar tokens are found. local: among neighbours, fast at any "
                    "size. global: among all tokens (ToMe for SD). k-th: dst is every k-th token, "
                    "k = stride_x * stride_y. random: dst tokens are random. toma: tiles with "
                    "soft weights (ToMA).",
                ),
                inputs.optional_whole(
                    "refresh_steps",
                    MAX_REFRESH_STEPS,
                    "0: every layer looks for similar tokens in every step. 1: the layers of one "
                    "resolution share what the first of them found. 2 or more: and keep it for "
                    "that many steps.",
                ),
                *inputs.token_limits(
                    "Where ratio would keep more tokens than this in a layer, more are merged."
                ),
                *inputs.transformer_inputs(),
                inputs.proportional_attention(
                    "Keys and values: ",
                    "Without this, merged tokens lose weight to the others, and UNets attend to "
                    "the mean of their keys, as the first ToMe for SD does.",
                ),
            ],
            outputs=[io.Model.Output(tooltip="The patched model. The input is not changed.")],
        )

    @classmethod
    def validate_inputs(
        cls,
        ratio: float | None = None,
        start_percent: float | None = None,
        end_percent: float | None = None,
        stride_x: int | None = None,
        stride_y: int | None = None,
        matching: Matching | None = MATCHINGS[0],
    ) -> bool | str:
        """Refuse what the ranges of single inputs cannot, before any node of the graph runs."""
        window = inputs.explain_refusal(PercentWindow, start=start_percent, end=end_percent)
        cells = inputs.explain_refusal(
            MergeSettings, ratio=ratio, stride_x=stride_x, stride_y=stride_y, matching=matching
        )
        return window or cells or True

    @classmethod
    def execute(cls, model: ModelPatcher, **values: Any) -> io.NodeOutput:
        chosen = values.pop("max_downsample", "auto")
        check_choice("max_downsample", chosen, tuple(DOWNSAMPLINGS))
        values["max_downsample"] = DOWNSAMPLINGS[chosen]
        return io.NodeOutput(attach(model, inputs.make_settings(MergeSettings, values)))


def _stride(name: str, side: str) -> io.Input:
    return io.Int.Input(
        name,
        default=2,
        min=1,
        max=MAX_STRIDE,
        advanced=True,
        tooltip=f"{side} of a cell in tokens. Each cell keeps one destination token (dst).",
    )


def _switch(name: str, tooltip: str, *, default: bool = False) -> io.Input:
    return io.Boolean.Input(name, default=default, advanced=True, tooltip=tooltip)
