"""Model class -> host file; an unknown model passes through with a reason."""

from __future__ import annotations

import logging

from comfy.ldm.modules.diffusionmodules.openaimodel import UNetModel
from comfy.model_patcher import ModelPatcher

from ...tome_core.settings import Settings
from . import transformer, unet
from .families import STEPS_ASIDE

logger = logging.getLogger("token_merge")


def attach(model: ModelPatcher, settings: Settings) -> ModelPatcher:
    """A clone of ``model`` that reduces tokens as ``settings`` say; ``model`` is not changed.

    A model of an unknown architecture is cloned unchanged and a warning logged.
    Raises TypeError where ``model`` is no MODEL, ValueError where the settings and those already
    on the model would reduce the same tokens in the same steps, or do not fit its architecture.
    """
    if not isinstance(model, ModelPatcher):
        raise TypeError(f"model is {type(model).__name__}, expected a MODEL")
    clone = model.clone()
    if settings.is_identity:
        return clone
    diffusion_model = clone.model.diffusion_model
    family = transformer.family_of(diffusion_model)
    if isinstance(diffusion_model, UNetModel):
        unet.attach(clone, settings)
    elif family:
        transformer.attach(clone, family, settings)
    else:
        name, reason = STEPS_ASIDE.get(
            transformer.class_path(diffusion_model),
            (type(clone.model).__name__, "its attention is laid out in a way that is not known"),
        )
        logger.warning("Token Merge: %s passes through unchanged: %s.", name, reason)
    return clone
