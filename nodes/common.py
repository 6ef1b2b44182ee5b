"""What every node that reduces the tokens of a model has: inputs, their checks, and execution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from comfy.model_patcher import ModelPatcher
from comfy_api.latest import io
from typing_extensions import override

from ..tome_core.checks import check_choice
from ..tome_core.schedule import EARLY, PercentRange
from ..tome_core.settings import MAX_SEED, MAX_TOKENS, Settings
from .hooks.attach import attach
from .hooks.run.node_text import find_node_id

PERCENTS = {"start": "start_percent", "end": "end_percent"}
"""Each field of ``PercentRange`` is given by this input."""

CHOICES: dict[str, dict[str, Any]] = {
    "max_downsample": {"auto": None, "1": 1, "2": 2, "4": 4, "8": 8},
    "local_window": {"auto": None, "off": 0, "8": 8, "12": 12, "16": 16, "24": 24, "32": 32},
    "reduce_small_layers": {"auto": False, "always": True},
}
"""The key is an input, and then its choice. The value is the setting for this choice."""


class ReductionNode(io.ComfyNode):
    """Takes a MODEL and returns a patched clone. Its nodes define a schema and ``settings``."""

    settings: ClassVar[type[Settings]]
    """The kind of settings that the node's inputs become."""

    @staticmethod
    def make_schema(
        node_id: str,
        display_name: str,
        description: str,
        aliases: Sequence[str],
        widgets: list[io.Input],
    ) -> io.Schema:
        return io.Schema(
            node_id=node_id,
            display_name=display_name,
            category="model/patch",
            description=description,
            search_aliases=list(aliases),
            inputs=widgets,
            outputs=[io.Model.Output(tooltip="The patched model. The input is not changed.")],
            hidden=[io.Hidden.unique_id],
            # Else ComfyUI would take the result of a node with the same inputs, here or in another
            # workflow, and with it the number of that node, which then gets our text.
            not_idempotent=True,
        )

    @classmethod
    def validate_inputs(
        cls, start_percent: float | None = None, end_percent: float | None = None
    ) -> bool | str:
        """Refuse what the limits of single inputs cannot, before any node of the graph runs."""
        if start_percent is None or end_percent is None:
            return True  # it comes over a link, and ``make_settings`` checks it
        try:
            PercentRange(start_percent, end_percent)
        except ValueError as refusal:
            # The page puts the input's name and a hyphen before it, as if one were taken off the
            # other.
            return f"no step lies in this range: {refusal}"
        return True

    @classmethod
    @override
    def execute(cls, model: ModelPatcher, **values: Any) -> io.NodeOutput:
        """A patched clone of ``model``, whose settings report on this node of the page."""
        check_names(cls, values)
        return io.NodeOutput(attach(model, make_settings(cls.settings, values), find_node_id(cls)))


def pick(inputs: Sequence[io.Input], *names: str) -> list[io.Input]:
    """Those with these names, in the order of the names."""
    found = {each.id: each for each in inputs}
    return [found[name] for name in names]


def check_names(node: type[io.ComfyNode], values: dict[str, Any]) -> None:
    """Refuse values of inputs that ``node`` does not have.

    ComfyUI drops such values, but not what comes over a link, for example in an old workflow.

    Raises ValueError naming the input and those that the node has.
    """
    known = [each.id for each in node.define_schema().inputs]
    for name in values:
        if name not in known:
            raise ValueError(
                f"{name} is no input of this node, expected only {', '.join(known)}; "
                "remove its link, or add the node anew"
            )


def make_settings(kind: type[Settings], values: dict[str, Any]) -> Settings:
    """Settings of ``kind`` from the values of inputs; defaults for those that a node lacks.

    Raises ValueError naming the input, its value and what is accepted.
    """
    rest = dict(values)
    percents = {field: rest.pop(name) for field, name in PERCENTS.items() if name in rest}
    for name, choices in CHOICES.items():
        if name in rest:
            check_choice(name, rest[name], tuple(choices))
            rest[name] = choices[rest[name]]
    return kind(percent_range=PercentRange(**percents), **rest)


def model_input() -> io.Input:
    return io.Model.Input("model", tooltip="The model to make faster.")


def percent_inputs(what: str) -> list[io.Input]:
    """``start_percent`` and ``end_percent`` of ``what``, as ComfyUI's own nodes have them."""
    return [
        io.Float.Input(
            "start_percent",
            default=PercentRange.start,
            min=0.0,
            max=1.0,
            step=0.001,
            tooltip=f"Where in the sampling schedule {what} starts. Above 0, the first steps run "
            "on the unpatched model. See also exact_early_steps.",
        ),
        io.Float.Input(
            "end_percent",
            default=PercentRange.end,
            min=0.0,
            max=1.0,
            step=0.001,
            tooltip=f"Where in the sampling schedule {what} ends. Below 1, the last steps run on "
            "the unpatched model.",
        ),
    ]


def exact_early_steps() -> io.Input:
    """Whether the steps that decide the picture stay exact."""
    return io.Boolean.Input(
        "exact_early_steps",
        default=Settings.exact_early_steps,
        tooltip=f"Transformers: the unpatched model computes the first {EARLY:.0%} of the sampling "
        "schedule. These steps decide what the picture shows. Off: faster, and the difference may "
        "be larger.",
    )


def max_tokens(limit: str) -> io.Input:
    """``max_tokens``, which ``limit`` explains."""
    return io.Int.Input(
        "max_tokens",
        default=Settings.max_tokens,
        min=0,
        max=MAX_TOKENS,
        tooltip=f"For very large pictures. {limit} 0: no limit.",
    )


def local_window(tooltip: str) -> io.Input:
    """``local_window``, which the tooltip explains."""
    options = list(CHOICES["local_window"])
    return io.Combo.Input("local_window", options=options, default="auto", tooltip=tooltip)


def reduce_small_layers() -> io.Input:
    """Whether the speed of this machine decides which layers are reduced."""
    return io.Combo.Input(
        "reduce_small_layers",
        options=list(CHOICES["reduce_small_layers"]),
        default="auto",
        tooltip="auto: a layer with so few tokens that this GPU gains nothing is not reduced, so "
        "another GPU may give a slightly different picture. always: such layers are reduced too. "
        "Choose it if pictures must not depend on how fast the GPU is.",
    )


def seed_input(what: str) -> io.Input:
    """The seed of ``what`` a node draws; it never changes by itself between two runs."""
    return io.Int.Input(
        "seed",
        default=Settings.seed,
        min=0,
        max=MAX_SEED,
        control_after_generate=False,
        tooltip=f"Seed of {what}. It is independent of the sampler's seed.",
    )


def proportional_attention(where: str, without: str) -> io.Input:
    """Whether a key weighs as much as the tokens it stands for."""
    return io.Boolean.Input(
        "proportional_attention",
        default=Settings.proportional_attention,
        tooltip=f"{where}a key that stands for several tokens gets the weight of all of them. "
        f"{without}",
    )
