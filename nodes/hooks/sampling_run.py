"""What every host does around a sampling run and a model call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import comfy.model_patcher
from comfy.model_base import BaseModel
from comfy.patcher_extension import WrapperExecutor
from torch import Tensor

from ...tome_core.schedule import step_of_sigma
from .composition import Reduction
from .run_state import ModelCall, Run

REDUCTION_KEY = "token_merge"
RUN_KEY = "token_merge_run"


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


@contextmanager
def model_call(
    base_model: BaseModel, t: Tensor, transformer_options: dict[str, Any]
) -> Iterator[ModelCall]:
    """What is common to the model calls of all hosts; reads sigma once.

    Outside any sampler run the call is a run of its own and reports at its end.
    """
    reduction: Reduction = transformer_options[REDUCTION_KEY]
    in_run = RUN_KEY in transformer_options
    run = transformer_options[RUN_KEY] if in_run else Run(_sample_sigmas(transformer_options))
    sigma = float(t.max())
    percent_to_sigma = base_model.model_sampling.percent_to_sigma
    active = tuple(
        settings
        for settings in reduction.settings
        if settings.window.contains_sigma(sigma, percent_to_sigma)
    )
    try:
        yield ModelCall(reduction, active, step_of_sigma(sigma, run.sigmas), run)
    finally:
        if not in_run:
            run.report.log(_why_nothing(reduction))


def _sample_sigmas(transformer_options: dict[str, Any]) -> tuple[float, ...]:
    """Noise levels of a model call outside any sampler run, none where it names none."""
    sigmas = transformer_options.get("sample_sigmas")
    return () if sigmas is None else tuple(sigmas.tolist())


def _why_nothing(reduction: Reduction) -> str:
    windows = " or ".join(str(settings.window) for settings in reduction.settings)
    return reduction.why_idle() or f"none of its steps lies in {windows} of the schedule"
