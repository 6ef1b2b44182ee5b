"""The Token Downsample node: attention to a smaller grid of keys and values, queries kept."""

from __future__ import annotations

from functools import partial
from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy_api.latest import io

from ..tome_core.checks import check_choice
from ..tome_core.schedule import PercentWindow
from ..tome_core.settings import (
    MAX_FACTOR,
    METHODS,
    MIN_FACTOR,
    DownsampleMethod,
    DownsampleSettings,
)
from . import inputs
from .hooks.registry import attach

WINDOWS = {"auto": None, "off": 0, "8": 8, "12": 12, "16": 16, "24": 24, "32": 32}
"""The choices of ``local_window`` as settings."""


class TokenDownsample(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="TokenDownsample",
            display_name="Token Downsample",
            category="model/patch",
            description="Makes a model faster: attention reads its keys and values from a smaller "
            "grid, while every token keeps its own query (ToDo).",
            search_aliases=["todo", "tome", "token downsampling", "speed up", "faster"],
            inputs=[
                io.Model.Input("model", tooltip="The model to make faster."),
                io.Float.Input(
                    "factor",
                    default=2.0,
                    min=MIN_FACTOR,
                    max=MAX_FACTOR,
                    step=0.25,
                    tooltip="Divides the height and the width of the grid of keys and values, in "
                    "the layers at the finest resolution at which this model has self-attention. "
                    "2 keeps a quarter of the keys and values. 1 changes nothing there.",
                ),
                io.Float.Input(
                    "factor_level_2",
                    default=1.0,
                    min=MIN_FACTOR,
                    max=MAX_FACTOR,
                    step=0.25,
                    tooltip="UNets: the same for the layers at the next coarser resolution. "
                    "Useful for very large pictures.",
                ),
                io.Combo.Input(
                    "method",
                    options=list(METHODS),
                    default=METHODS[0],
                    tooltip="How keys and values are resampled. stratified keeps a random token "
                    "of each cell and picks again in every layer and step, so that errors do not "
                    "add up. interleaved also splits the queries into groups, and each group reads "
                    "its own random keys: nearer to the plain picture. nearest-exact always keeps "
                    "the token in the middle.",
                ),
                *inputs.percent_window("downsampling"),
                io.Combo.Input(
                    "local_window",
                    options=list(WINDOWS),
                    default="auto",
                    optional=True,
                    tooltip="Side, in tokens, of the neighbourhood around each query in which all "
                    "keys stay exact. factor then acts on the keys farther away. auto: 16 on "
                    "transformers, off on UNets, where it does not pay.",
                ),
                *inputs.token_limits(
                    "Where the factors would keep more keys and values than this in a layer they "
                    "act on, the grid is downsampled more."
                ),
                io.Float.Input(
                    "temporal_factor",
                    default=1.0,
                    min=MIN_FACTOR,
                    max=MAX_FACTOR,
                    step=0.25,
                    optional=True,
                    advanced=True,
                    tooltip="Video transformers: divides the number of frames of keys and values "
                    "too. 1 keeps every frame.",
                ),
                *inputs.transformer_inputs(),
                inputs.proportional_attention(
                    "Transformers: ",
                    "Without this, the prompt gains weight against the picture.",
                ),
                inputs.seed_input("the tokens and groups that are random", optional=True),
            ],
            outputs=[io.Model.Output(tooltip="The patched model. The input is not changed.")],
        )

    @classmethod
    def validate_inputs(
        cls,
        start_percent: float | None = None,
        end_percent: float | None = None,
        method: DownsampleMethod | None = METHODS[0],
        local_window: str | None = "auto",
    ) -> bool | str:
        """Refuse what the ranges of single inputs cannot, before any node of the graph runs."""
        percents = inputs.explain_refusal(PercentWindow, start=start_percent, end=end_percent)
        side = WINDOWS.get(local_window or "auto")
        window = inputs.explain_refusal(
            partial(DownsampleSettings, local_window=side), method=method
        )
        return percents or window or True

    @classmethod
    def execute(cls, model: ModelPatcher, **values: Any) -> io.NodeOutput:
        chosen = values.pop("local_window", "auto")
        check_choice("local_window", chosen, tuple(WINDOWS))
        values["local_window"] = WINDOWS[chosen]
        return io.NodeOutput(attach(model, inputs.make_settings(DownsampleSettings, values)))
