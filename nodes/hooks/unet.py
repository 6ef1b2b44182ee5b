"""Token reduction in UNets: SD 1.x, 2.x, SDXL, SSD-1B and SVD's spatial layers."""

from __future__ import annotations

from typing import Any

import comfy.model_patcher
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from torch import Tensor

from ...tome_core.schedule import step_of_sigma
from ...tome_core.settings import Settings
from .composition import Reduction
from .feed_forward import MergedFeedForward
from .run_state import CURRENT_CALL, ModelCall, Run
from .unet_layers import self_attention_layers
from .unet_patches import with_patches

REDUCTION_KEY = "token_merge"
RUN_KEY = "token_merge_run"


def attach(model: ModelPatcher, settings: Settings) -> None:
    """Add ``settings`` to a freshly cloned UNet.

    The settings travel as data in the clone's transformer_options; the wrappers and patches that
    read them are the same functions for every clone and hold nothing.
    Raises ValueError where they would reduce tokens that settings of an earlier node reduce.
    """
    options = model.model_options["transformer_options"]
    reduction = options.get(REDUCTION_KEY)
    if reduction is None:
        layers = self_attention_layers(model.model.diffusion_model)
        reduction = Reduction({layer.key: layer for layer in layers})
        model.add_wrapper_with_key(WrappersMP.OUTER_SAMPLE, REDUCTION_KEY, wrap_run)
        model.add_wrapper_with_key(WrappersMP.APPLY_MODEL, REDUCTION_KEY, wrap_model_call)
    options[REDUCTION_KEY] = reduction.with_settings(settings)
    for layer in reduction.layers.values():
        if "mlp" in reduction.roles(settings, layer.downsample):
            _merge_feed_forward(model, f"{layer.path}.ff.forward", layer.key)


def _merge_feed_forward(model: ModelPatcher, name: str, layer: tuple[str, int, int]) -> None:
    forward = model.get_model_object(name)
    if not isinstance(forward, MergedFeedForward):
        model.add_object_patch(name, MergedFeedForward(forward, layer))


def wrap_run(
    executor: WrapperExecutor,
    noise: Tensor,
    latent_image: Tensor,
    sampler: Any,
    sigmas: Tensor,
    *args: Any,
    **kwargs: Any,
) -> Tensor:
    """OUTER_SAMPLE wrapper: gives one sampling run its state and reports at its end."""
    guider = executor.class_obj
    original = guider.model_options
    guider.model_options = comfy.model_patcher.create_model_options_clone(original)
    options = guider.model_options["transformer_options"]
    run = options[RUN_KEY] = Run(tuple(sigmas.tolist()))
    try:
        return executor(noise, latent_image, sampler, sigmas, *args, **kwargs)
    finally:
        guider.model_options = original
        run.report.log(_why_nothing(options[REDUCTION_KEY]))


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
    """APPLY_MODEL wrapper: reads sigma once and installs the patches for this call alone."""
    reduction: Reduction = transformer_options[REDUCTION_KEY]
    in_run = RUN_KEY in transformer_options
    run = transformer_options[RUN_KEY] if in_run else Run(_sample_sigmas(transformer_options))
    base_model = executor.class_obj
    sigma = float(t.max())
    percent_to_sigma = base_model.model_sampling.percent_to_sigma
    replacements = transformer_options.get("patches_replace", {})
    call = ModelCall(
        reduction=reduction,
        active=tuple(
            settings
            for settings in reduction.settings
            if settings.window.contains_sigma(sigma, percent_to_sigma)
        ),
        step=step_of_sigma(sigma, run.sigmas),
        frames=kwargs.get("num_video_frames", base_model.diffusion_model.default_num_video_frames),
        run=run,
        replaced={name: frozenset(replacements.get(name, ())) for name in ("attn1", "attn2")},
    )
    options = with_patches(transformer_options, call)
    outer = CURRENT_CALL.set(call)
    try:
        return executor(x, t, c_concat, c_crossattn, control, options, **kwargs)
    finally:
        CURRENT_CALL.reset(outer)
        if not in_run:
            run.report.log(_why_nothing(reduction))


def _sample_sigmas(transformer_options: dict[str, Any]) -> tuple[float, ...]:
    """Noise levels of a model call outside any sampler run, none where it names none."""
    sigmas = transformer_options.get("sample_sigmas")
    return () if sigmas is None else tuple(sigmas.tolist())


def _why_nothing(reduction: Reduction) -> str:
    windows = " or ".join(str(settings.window) for settings in reduction.settings)
    return reduction.why_idle() or f"none of its steps lies in {windows} of the schedule"
