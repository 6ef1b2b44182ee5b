"""The Token Downsample node: attention to a smaller grid of keys and values, queries kept."""

from __future__ import annotations

from comfy.model_patcher import ModelPatcher
from comfy_api.latest import io

from ..tome_core.schedule import PercentWindow
from ..tome_core.settings import (
    MAX_FACTOR,
    METHODS,
    MIN_FACTOR,
    DownsampleMethod,
    DownsampleSettings,
    TransformerSettings,
)
from .hooks.registry import attach
from .inputs import (
    percent_window,
    proportional_attention,
    seed_of,
    token_limits,
    transformer_inputs,
)


class TokenDownsample(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="TokenDownsample",
            display_name="Token Downsample",
            category="model/patch",
            description="Makes a model faster: attention reads keys and values from a smaller "
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
                    tooltip="Divides both sides of the grid of keys and values in the layers at "
                    "the finest resolution at which this model has self-attention: 2 leaves a "
                    "quarter of them. 1 changes nothing.",
                ),
                io.Float.Input(
                    "factor_level_2",
                    default=1.0,
                    min=MIN_FACTOR,
                    max=MAX_FACTOR,
                    step=0.25,
                    tooltip="The same for the layers at the next coarser resolution. Useful for "
                    "very large pictures.",
                ),
                io.Combo.Input(
                    "method",
                    options=list(METHODS),
                    default=METHODS[0],
                    tooltip="How keys and values are resampled. stratified picks a random token "
                    "of each cell, another one in every layer and step, so that errors do not "
                    "add up. interleaved picks others for every group of queries too: nearer to "
                    "the plain picture, a little slower. nearest-exact always picks the one in "
                    "the middle.",
                ),
                *percent_window("downsampling"),
                *token_limits(
                    "downsamples more than the factors say "
                    "where a layer would keep more keys and values than this."
                ),
                io.Float.Input(
                    "temporal_factor",
                    default=1.0,
                    min=MIN_FACTOR,
                    max=MAX_FACTOR,
                    step=0.25,
                    optional=True,
                    advanced=True,
                    tooltip="Video transformers: divides the frames of keys and values too. "
                    "1 keeps every frame.",
                ),
                *transformer_inputs(),
                proportional_attention(
                    "Transformers: ",
                    "Without it, the prompt gains weight against the picture.",
                ),
                seed_of("the tokens that stratified and interleaved draw", optional=True),
            ],
            outputs=[io.Model.Output(tooltip="The patched model. The input is not changed.")],
        )

    @classmethod
    def validate_inputs(
        cls, start_percent: float | None = None, end_percent: float | None = None
    ) -> bool | str:
        """Refuse what the ranges of single inputs cannot, before any node of the graph runs.

        An input that comes over a link is None here; ``execute`` checks it.
        """
        if start_percent is None or end_percent is None:
            return True
        try:
            PercentWindow(start_percent, end_percent)
        except ValueError as refusal:
            return str(refusal)
        return True

    @classmethod
    def execute(
        cls,
        model: ModelPatcher,
        factor: float,
        factor_level_2: float,
        method: DownsampleMethod,
        start_percent: float,
        end_percent: float,
        max_tokens: int = 0,
        min_tokens: int = 0,
        temporal_factor: float = 1.0,
        keep_first_blocks: int = 0,
        keep_last_blocks: int = 0,
        proportional_attention: bool = True,
        seed: int = 0,
    ) -> io.NodeOutput:
        settings = DownsampleSettings(
            factor=factor,
            factor_level_2=factor_level_2,
            method=method,
            window=PercentWindow(start_percent, end_percent),
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            temporal_factor=temporal_factor,
            transformer=TransformerSettings(
                keep_first_blocks=keep_first_blocks,
                keep_last_blocks=keep_last_blocks,
            ),
            proportional_attention=proportional_attention,
            seed=seed,
        )
        return io.NodeOutput(attach(model, settings))
