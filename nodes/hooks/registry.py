"""Model class -> host file; an unknown model passes through with a reason."""

from __future__ import annotations

import logging

from comfy.ldm.modules.diffusionmodules.openaimodel import UNetModel
from comfy.model_patcher import ModelPatcher

from ...tome_core.settings import Settings
from . import unet

logger = logging.getLogger("token_merge")


def attach(model: ModelPatcher, settings: Settings) -> ModelPatcher:
    """A clone of ``model`` that reduces tokens as ``settings`` say; ``model`` is not changed.

    A model of an unknown architecture is cloned unchanged and a warning logged.
    Raises TypeError where ``model`` is no MODEL, ValueError where the settings and those already
    on the model would reduce the same tokens in the same steps.
    """
    if not isinstance(model, ModelPatcher):
        raise TypeError(f"model is {type(model).__name__}, expected a MODEL")
    clone = model.clone()
    if settings.is_identity:
        return clone
    if not isinstance(clone.model.diffusion_model, UNetModel):
        logger.warning(
            "Token Merge: %s is not a UNet and passes through unchanged; "
            "UNets are SD 1.x, SD 2.x, SDXL, SSD-1B and SVD.",
            type(clone.model).__name__,
        )
        return clone
    unet.attach(clone, settings)
    return clone
