"""The Compare Token Reduction node: samples with an unpatched and a patched model, and reports."""

from __future__ import annotations

from typing import Any

import comfy.samplers
from comfy.model_patcher import ModelPatcher
from comfy_api.latest import io, ui

from .common import check_names
from .comparison.report import describe_results, describe_surroundings
from .comparison.run import Sampling, compare
from .hooks.attach import check_model
from .hooks.run.node_text import RUNNING, STOPPED, find_node_id, write_on_node


class TokenReductionCompare(io.ComfyNode):
    @classmethod
    def define_schema(cls) -> io.Schema:
        return io.Schema(
            node_id="TokenReductionCompare",
            display_name="Compare Token Reduction",
            # Where KSampler is: this node stands in its place and has its inputs.
            category="model/sampling",
            description="Samples with an unpatched and a patched model in turn, and says how much "
            "faster the patched one is on this machine and how much its result differs. It "
            "samples four times. Works with the nodes of other packs too.",
            search_aliases=[
                "compare models",
                "benchmark",
                "speed test",
                "before after",
                "tome",
                "todo",
                "token merge",
                "token downsample",
                "performance",
            ],
            inputs=[
                io.Model.Input("model", tooltip="The unpatched model, as the loader gives it."),
                io.Model.Input(
                    "patched_model",
                    tooltip="The same model after Token Merge, Token Downsample or other nodes.",
                ),
                *_sampling_inputs(),
            ],
            outputs=[
                io.Latent.Output(
                    display_name="unpatched", tooltip="What the unpatched model gives."
                ),
                io.Latent.Output(display_name="patched", tooltip="What the patched model gives."),
                io.String.Output(
                    display_name="report", tooltip="Everything as text, to be put in a bug report."
                ),
            ],
            hidden=[io.Hidden.unique_id],
            # Else a second node with the same inputs, or one that was placed anew, would get the
            # result of the first one, and no text.
            not_idempotent=True,
            is_output_node=True,
        )

    @classmethod
    def execute(
        cls, model: ModelPatcher, patched_model: ModelPatcher, **inputs: Any
    ) -> io.NodeOutput:
        check_names(cls, inputs)
        check_model("model", model)
        check_model("patched_model", patched_model)
        sampling = Sampling(**inputs)
        write_on_node(find_node_id(cls), RUNNING)
        try:
            unpatched, patched = compare(model, patched_model, sampling)
        except BaseException:
            write_on_node(find_node_id(cls), STOPPED)
            raise
        lines = describe_results(unpatched, patched)
        text = "\n".join(lines + describe_surroundings(model, patched_model, sampling))
        write_on_node(find_node_id(cls), text)
        return io.NodeOutput(
            unpatched[0].latent,
            patched[0].latent,
            text,
            # The page shows this text on nodes of its own only, but keeps it in the history.
            ui=ui.PreviewText(text),
        )


def _sampling_inputs() -> list[io.Input]:
    """Those of KSampler, in its order, with its ranges and its tooltips."""
    return [
        io.Int.Input(
            "seed",
            default=0,
            min=0,
            max=0xFFFFFFFFFFFFFFFF,
            control_after_generate=False,
            tooltip="The random seed used for creating the noise.",
        ),
        io.Int.Input(
            "steps",
            default=20,
            min=1,
            max=10000,
            tooltip="The number of steps used in the denoising process.",
        ),
        io.Float.Input(
            "cfg",
            default=8.0,
            min=0.0,
            max=100.0,
            step=0.1,
            round=0.01,
            tooltip="The Classifier-Free Guidance scale balances creativity and adherence to the "
            "prompt. Higher values result in images more closely matching the prompt however too "
            "high values will negatively impact quality.",
        ),
        io.Combo.Input(
            "sampler_name",
            options=comfy.samplers.KSampler.SAMPLERS,
            tooltip="The algorithm used when sampling, this can affect the quality, speed, and "
            "style of the generated output.",
        ),
        io.Combo.Input(
            "scheduler",
            options=comfy.samplers.KSampler.SCHEDULERS,
            tooltip="The scheduler controls how noise is gradually removed to form the image.",
        ),
        io.Conditioning.Input(
            "positive",
            tooltip="The conditioning describing the attributes you want to include in the image.",
        ),
        io.Conditioning.Input(
            "negative",
            tooltip="The conditioning describing the attributes you want to exclude from the "
            "image.",
        ),
        io.Latent.Input("latent_image", tooltip="The latent image to denoise."),
        io.Float.Input(
            "denoise",
            default=1.0,
            min=0.0,
            max=1.0,
            step=0.01,
            tooltip="The amount of denoising applied, lower values will maintain the structure of "
            "the initial image allowing for image to image sampling.",
        ),
    ]
