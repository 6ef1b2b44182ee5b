"""Token reduction in diffusion transformers: Flux, Qwen-Image, Wan and the other families."""

from __future__ import annotations

import logging
from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from torch import Tensor

from ...tome_core.settings import MergeSettings, Settings
from .attention_call import OVERRIDE_KEY
from .composition import Reduction
from .families import FAMILIES, Family
from .layouts import Layout, UnknownLayoutError
from .sampling_run import REDUCTION_KEY, model_call, wrap_run
from .transformer_override import ONLY_RESOLUTION, TransformerCall, with_override

logger = logging.getLogger("token_merge")

FAMILY_KEY = "token_merge_family"
"""Noted once, since a compiled model is of another class while it is called."""


def attach(model: ModelPatcher, family: Family, settings: Settings) -> None:
    """Add ``settings`` to a freshly cloned transformer of ``family``.

    Raises ValueError where they would reduce tokens that settings of an earlier node reduce, or
    ask for soft weights, which keys with positions do not allow.
    """
    if isinstance(settings, MergeSettings):
        _refuse_or_warn(family, settings)
    options = model.model_options["transformer_options"]
    reduction = options.get(REDUCTION_KEY)
    if reduction is None:
        reduction = Reduction((ONLY_RESOLUTION,))
        options[FAMILY_KEY] = family
        model.add_wrapper_with_key(WrappersMP.OUTER_SAMPLE, REDUCTION_KEY, wrap_run)
        model.add_wrapper_with_key(WrappersMP.APPLY_MODEL, REDUCTION_KEY, wrap_model_call)
    options[REDUCTION_KEY] = reduction.with_settings(settings)
    kept = settings.transformer.keep_first_blocks or settings.transformer.keep_last_blocks
    if kept and not family.blocks:
        logger.warning(
            "Token Merge: keep_first_blocks and keep_last_blocks have no effect: "
            "%s does not tell which of its blocks is running.",
            family.name,
        )


def _refuse_or_warn(family: Family, settings: MergeSettings) -> None:
    if settings.matching == "toma":
        raise ValueError(
            f"matching is 'toma', expected 'local', 'global', 'k-th' or 'random' with "
            f"{family.name}: its keys carry positions, which weighted sums would blur"
        )
    for name in ("merge_cross_attention", "merge_mlp"):
        if getattr(settings, name):
            logger.warning("Token Merge: %s acts on UNets alone, not on %s.", name, family.name)


def wrap_model_call(
    executor: WrapperExecutor,
    x: Tensor,
    t: Tensor,
    c_concat: Tensor | None,
    c_crossattn: Tensor | None,
    control: Any,
    transformer_options: dict[str, Any],
    **kwargs: Any,
) -> Tensor:
    """APPLY_MODEL wrapper: finds the picture's place and installs the override for this call."""
    model = executor.class_obj.diffusion_model
    family: Family = transformer_options[FAMILY_KEY]
    with model_call(executor.class_obj, t, transformer_options) as call:
        try:
            layout = Layout.of_call(family, model, x, c_crossattn, kwargs)
        except UnknownLayoutError as reason:
            call.run.report.note(f"all layers left alone: {reason}")
            options = transformer_options
        else:
            options = with_override(
                transformer_options,
                TransformerCall(
                    **vars(call),
                    layout=layout,
                    first_single=family.first_block(model, "single"),
                    total_blocks=family.total_blocks(model),
                    earlier=transformer_options.get(OVERRIDE_KEY),
                ),
            )
        return executor(x, t, c_concat, c_crossattn, control, options, **kwargs)


def family_of(model: object) -> Family | None:
    """The family of a diffusion model, None where its layout is not known."""
    return FAMILIES.get(class_path(model))


def class_path(model: object) -> str:
    """Module and class, as in the tables of families.py."""
    return f"{type(model).__module__}.{type(model).__qualname__}"
