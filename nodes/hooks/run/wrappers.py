"""Wrappers around a sampling run, each of its predictions and each call of the model."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

from comfy.k_diffusion.sampling import sigma_to_half_log_snr
from comfy.model_base import BaseModel
from comfy.model_patcher import ModelPatcher, create_model_options_clone
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from torch import Tensor

from ....tome_core.constants import STORE
from ....tome_core.schedule import (
    count_steps_before,
    find_long_steps,
    find_share_left,
    find_step,
)
from ....tome_core.tokens import asks_for_gradients
from ..settings_stack import SettingsStack
from .device_wait import wait_for
from .draw_index import DrawIndex
from .kept_tensors import keep_while_running
from .node_text import report_end, report_lost, report_progress, report_start, report_stop
from .state import KEY, Attached, ModelCall, ModelInputs, Run, enter_call


def add_wrappers(model: ModelPatcher) -> None:
    """The same functions for every clone; all that they know is in transformer_options."""
    model.add_wrapper_with_key(WrappersMP.OUTER_SAMPLE, KEY, wrap_run)
    model.add_wrapper_with_key(WrappersMP.PREDICT_NOISE, KEY, wrap_prediction)
    model.add_wrapper_with_key(WrappersMP.APPLY_MODEL, KEY, wrap_model_call)


def wrap_run(
    executor: WrapperExecutor,
    noise: Tensor,
    latent_image: Tensor,
    sampler: Any,
    sigmas: Tensor,
    *args: Any,
    **kwargs: Any,
) -> Tensor:
    """Give one sampling run its state; tell what was done where it comes to its end."""
    guider = executor.class_obj
    original = guider.model_options
    if KEY not in original["transformer_options"]:
        report_lost()
        return executor(noise, latent_image, sampler, sigmas, *args, **kwargs)
    guider.model_options = create_model_options_clone(original)
    options = guider.model_options["transformer_options"]
    attached: Attached = options[KEY]
    sampling = guider.model_patcher.get_model_object("model_sampling")
    levels = sigmas.cpu()
    long_steps = find_long_steps(sigma_to_half_log_snr(levels, sampling).tolist())
    draw_index = DrawIndex(long_steps, _count_steps_before(levels.tolist(), sampling))
    prompted = bool(guider.conds.get("positive", True))
    run = Run(tuple(levels.tolist()), prompted, draw_index=draw_index)
    options[KEY] = replace(attached, run=run)
    report_start(attached)
    try:
        with keep_while_running():
            samples = executor(noise, latent_image, sampler, sigmas, *args, **kwargs)
    except BaseException:
        report_stop(attached)
        raise
    finally:
        guider.model_options = original
    wait_for(samples)  # as ComfyUI does next
    report_end(attached, run)
    return samples


def _count_steps_before(sigmas: list[float], sampling: Any) -> int | None:
    """How many steps lie before this run; None where the model does not tell its noise levels."""
    known = getattr(sampling, "sigmas", None)
    if known is None:
        return None
    known = known.tolist()
    return count_steps_before([find_share_left(sigma, known) for sigma in sigmas])


def wrap_prediction(
    executor: WrapperExecutor,
    x: Tensor,
    timestep: Tensor,
    model_options: dict[str, Any],
    *args: Any,
    **kwargs: Any,
) -> Tensor:
    """Count the predictions that a sampler asks for."""
    attached: Attached | None = model_options.get("transformer_options", {}).get(KEY)
    if attached and attached.run:
        attached.run.prediction += 1
    return executor(x, timestep, model_options, *args, **kwargs)


def wrap_model_call(
    executor: WrapperExecutor,
    x: Tensor,
    t: Tensor,
    c_concat: Tensor | None = None,
    c_crossattn: Tensor | None = None,
    control: Any = None,
    transformer_options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Tensor:
    """Reduce tokens in one call of the model.

    Outside any sampler run the call is a run of its own.
    """
    transformer_options = transformer_options or {}
    attached: Attached | None = transformer_options.get(KEY)
    # Another node took it away, see ``report_lost``, or calls the model within a call of ours.
    if attached is None or attached.call:
        return executor(x, t, c_concat, c_crossattn, control, transformer_options, **kwargs)
    STORE.begin_call()
    run = attached.run or Run(_list_sigmas(transformer_options))
    if reason := _explain_unreduced(executor.class_obj, x, t, c_crossattn):
        run.report.say(None, f"all layers skipped: {reason}")
        return executor(x, t, c_concat, c_crossattn, control, transformer_options, **kwargs)
    inputs = ModelInputs(executor.class_obj, x, c_crossattn, transformer_options, kwargs)
    call = _make_call(attached.stack, run, inputs, t)
    if attached.run:
        report_progress(attached, run)
    options = attached.architecture.reduce(call, inputs)
    with enter_call(options[KEY]):
        out = executor(x, t, c_concat, c_crossattn, control, options, **kwargs)
    if attached.run is None:
        report_end(attached, run)
    return out


def _explain_unreduced(model: BaseModel, x: Tensor, t: Tensor, c_crossattn: Tensor | None) -> str:
    """Why a call of the model is left as it is, empty where it may be reduced."""
    if len(t) == 0:  # it has no noise level; what becomes of it is ComfyUI's business
        return "a batch was empty"
    # A block that is computed again in the backward pass does not tell which one it is.
    given = chain((x, c_crossattn), model.diffusion_model.parameters())
    if asks_for_gradients(given):
        return "training needs gradients of all tokens"
    return ""


def _make_call(stack: SettingsStack, run: Run, inputs: ModelInputs, t: Tensor) -> ModelCall:
    ranges = [settings.percent_range for settings in stack.settings]
    # To read the noise level waits for the device. Where no sampler and no preview waits either,
    # the CPU starts the next step while a GPU still computes.
    depends = run.draw_index.needs_sigma(run.prediction) or not all(r.is_whole for r in ranges)
    sigma = float(t.max()) if depends else None
    for percent_range in ranges:
        if percent_range not in run.ranges:
            percent_to_sigma = inputs.base_model.model_sampling.percent_to_sigma
            run.ranges[percent_range] = percent_range.find_sigmas(percent_to_sigma)
    active = tuple(
        each
        for each in stack.settings
        if sigma is None or each.percent_range.is_whole or sigma in run.ranges[each.percent_range]
    )
    run.called = True
    run.acted.update(active)
    step = None if sigma is None else find_step(sigma, run.sigmas)
    return ModelCall(
        stack=stack,
        active=active,
        acting={each: stack.find_acting(active, each) for each in stack.resolutions},
        draw_index=run.draw_index.find(run.prediction, sigma, step),
        run=run,
    )


def _list_sigmas(transformer_options: dict[str, Any]) -> tuple[float, ...]:
    """Noise levels of a model call outside any sampler run, none where it names none."""
    sigmas = transformer_options.get("sample_sigmas")
    return () if sigmas is None else tuple(sigmas.tolist())
