"""Attaches settings to a model; a model of an unknown architecture passes through."""

from __future__ import annotations

import logging
from dataclasses import replace

from comfy.ldm.modules.diffusionmodules.openaimodel import UNetModel
from comfy.model_patcher import ModelPatcher

from ...tome_core.settings import Settings
from .model_call import KEY, Architecture, Attached
from .sampling_run import add_wrappers
from .settings_stack import SettingsStack
from .transformer.attach import Transformer
from .transformer.families import FAMILIES, SKIPPED_FAMILIES
from .unet.attach import UNet

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
    options = clone.model_options["transformer_options"]
    attached: Attached | None = options.get(KEY)
    if attached is None:
        architecture = _find_architecture(clone)
        if architecture is None:
            return clone
        attached = Attached(architecture, SettingsStack(architecture.resolutions))
        add_wrappers(clone)
    attached.architecture.check(settings)
    stack = attached.stack.add(settings)
    options[KEY] = replace(attached, stack=stack)
    attached.architecture.patch(clone, stack)
    return clone


def _find_architecture(model: ModelPatcher) -> Architecture | None:
    """Read off the model when the first node is applied: a compiled model is of another class."""
    diffusion_model = model.model.diffusion_model
    if isinstance(diffusion_model, UNetModel):
        return UNet.read(diffusion_model)
    kind = type(diffusion_model)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name in FAMILIES:
        return Transformer(FAMILIES[name])
    unknown = (type(model.model).__name__, "the order of its tokens is not known here")
    title, reason = SKIPPED_FAMILIES.get(name, unknown)
    logger.warning("Token Merge: %s passes through unchanged: %s.", title, reason)
    return None
