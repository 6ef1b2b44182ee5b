"""The Token Merge node: merges similar tokens before attention, copies them back after it."""

from __future__ import annotations

from comfy.model_patcher import ModelPatcher
from comfy_api.latest import io

from ..tome_core.schedule import PercentWindow
from ..tome_core.settings import (
    MATCHINGS,
    MAX_RATIO,
    MAX_REFRESH_STEPS,
    MAX_STRIDE,
    TARGETS,
    Matching,
    MergeSettings,
    Target,
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

AUTO = "auto"


class TokenMerge(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="TokenMerge",
            display_name="Token Merge",
            category="model/patch",
            description="Makes a model faster: merges tokens that are alike before attention "
            "and copies the result back to each of them (ToMe).",
            search_aliases=["tome", "tomesd", "token merging", "speed up", "faster"],
            inputs=[
                io.Model.Input("model", tooltip="The model to make faster."),
                io.Float.Input(
                    "ratio",
                    default=0.5,
                    min=0.0,
                    max=MAX_RATIO,
                    step=0.01,
                    tooltip="Share of the tokens that is merged away. Higher is faster and loses "
                    "more detail; 0 changes nothing. At most 1 - 1 / (stride_x * stride_y): 0.75 "
                    "with strides of 2.",
                ),
                io.Combo.Input(
                    "max_downsample",
                    options=[AUTO, "1", "2", "4", "8"],
                    default=AUTO,
                    tooltip="Acts on the layers whose picture is downsampled at most this much. "
                    "auto: the finest resolution at which this model has self-attention "
                    "(1 on SD 1.5, 2 on SDXL). Higher values reach coarser layers too: little "
                    "speed, more change.",
                ),
                io.Combo.Input(
                    "target",
                    options=list(TARGETS),
                    default=TARGETS[0],
                    tooltip="What is merged in self-attention. All three saves most; keys and "
                    "values alone leaves every token its own query; queries alone leaves every "
                    "token to be attended to.",
                ),
                *percent_window("merging"),
                io.Int.Input(
                    "stride_x",
                    default=2,
                    min=1,
                    max=MAX_STRIDE,
                    advanced=True,
                    tooltip="Width in tokens of the cell that keeps one destination token.",
                ),
                io.Int.Input(
                    "stride_y",
                    default=2,
                    min=1,
                    max=MAX_STRIDE,
                    advanced=True,
                    tooltip="Height in tokens of the cell that keeps one destination token.",
                ),
                io.Boolean.Input(
                    "random_destinations",
                    default=True,
                    advanced=True,
                    tooltip="Destination: a random token of each cell, new in every step and "
                    "layer, instead of always its first. Avoids grid patterns.",
                ),
                seed_of("the random destinations"),
                io.Boolean.Input(
                    "merge_cross_attention",
                    default=False,
                    advanced=True,
                    tooltip="Also merge the queries of cross-attention (attention to the prompt). "
                    "Little speed, more change.",
                ),
                io.Boolean.Input(
                    "merge_mlp",
                    default=False,
                    advanced=True,
                    tooltip="Also merge the tokens of the MLP after attention. Faster, but loses "
                    "fine detail.",
                ),
                io.Combo.Input(
                    "matching",
                    options=list(MATCHINGS),
                    default=MATCHINGS[0],
                    optional=True,
                    advanced=True,
                    tooltip="How similar tokens are found. local: among neighbours, fast at any "
                    "size. global: among all (ToMe for SD). k-th: every k-th token stays, "
                    "k = stride_x * stride_y. random: random tokens stay. toma: tiles with soft "
                    "weights (ToMA).",
                ),
                io.Int.Input(
                    "refresh_steps",
                    default=0,
                    min=0,
                    max=MAX_REFRESH_STEPS,
                    optional=True,
                    advanced=True,
                    tooltip="0: every layer looks for similar tokens in every step. 1: layers of "
                    "one resolution share what the first of them found. More: and keep it for "
                    "so many steps.",
                ),
                *token_limits(
                    "merges more than ratio says where a layer would keep more tokens than this."
                ),
                *transformer_inputs(),
                proportional_attention(
                    "Keys and values: ", "Without it, merged tokens lose weight to those that stay."
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
        matching: Matching = MATCHINGS[0],
    ) -> bool | str:
        """Refuse what the ranges of single inputs cannot, before any node of the graph runs.

        An input that comes over a link is None here; ``execute`` checks it.
        """
        if ratio is None or start_percent is None or end_percent is None:
            return True
        if stride_x is None or stride_y is None:
            return True
        try:
            MergeSettings(
                ratio=ratio,
                stride_x=stride_x,
                stride_y=stride_y,
                matching=matching,
                window=PercentWindow(start_percent, end_percent),
            )
        except ValueError as refusal:
            return str(refusal)
        return True

    @classmethod
    def execute(
        cls,
        model: ModelPatcher,
        ratio: float,
        max_downsample: str,
        target: Target,
        start_percent: float,
        end_percent: float,
        stride_x: int,
        stride_y: int,
        random_destinations: bool,
        seed: int,
        merge_cross_attention: bool,
        merge_mlp: bool,
        matching: Matching = MATCHINGS[0],
        refresh_steps: int = 0,
        max_tokens: int = 0,
        min_tokens: int = 0,
        keep_first_blocks: int = 0,
        keep_last_blocks: int = 0,
        proportional_attention: bool = True,
    ) -> io.NodeOutput:
        settings = MergeSettings(
            ratio=ratio,
            max_downsample=None if max_downsample == AUTO else int(max_downsample),
            target=target,
            window=PercentWindow(start_percent, end_percent),
            stride_x=stride_x,
            stride_y=stride_y,
            random_destinations=random_destinations,
            seed=seed,
            merge_cross_attention=merge_cross_attention,
            merge_mlp=merge_mlp,
            matching=matching,
            refresh_steps=refresh_steps,
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            transformer=TransformerSettings(
                keep_first_blocks=keep_first_blocks,
                keep_last_blocks=keep_last_blocks,
            ),
            proportional_attention=proportional_attention,
        )
        return io.NodeOutput(attach(model, settings))
