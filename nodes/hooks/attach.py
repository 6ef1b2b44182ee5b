"""Attaches settings to a model; a model of an unknown architecture passes through."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from comfy.ldm.modules.diffusionmodules.openaimodel import UNetModel
from comfy.model_patcher import ModelPatcher

from ...tome_core.plan import Skipped
from ...tome_core.settings import Settings
from .attention.overrides import find_pack
from .run.kept_tensors import give_back_with
from .run.node_text import SETTLED, write_on_node
from .run.report import Lines
from .run.state import KEY, Architecture, Attached
from .run.wrappers import add_wrappers
from .settings_stack import AppliedNode, SettingsStack
from .transformer.attach import Transformer
from .transformer.families import FAMILIES, SKIPPED_FAMILIES
from .unet.attach import UNet

logger = logging.getLogger("token_merge")

CHANGES_NOTHING = "Changes nothing: with these inputs no layer has fewer tokens"


def attach(model: ModelPatcher, settings: Settings, node_id: str | None = None) -> ModelPatcher:
    """A clone of ``model`` that reduces tokens as ``settings`` say; ``model`` is not changed.

    A model of an unknown architecture is cloned unchanged, and the node says so.

    node_id: of the node on the page, None in a script.

    Raises TypeError where ``model`` is no MODEL, ValueError where the settings would act in no
    step, or where they and those on the model would reduce the same tokens in the same steps.
    """
    check_model("model", model)
    clone = model.clone()
    if settings.is_identity:
        _say(logging.INFO, settings, node_id, CHANGES_NOTHING)
        return clone
    options = clone.model_options["transformer_options"]
    attached: Attached | None = options.get(KEY)
    if attached is None:
        architecture = _find_architecture(clone)
        if isinstance(architecture, Skipped):
            _say(logging.WARNING, settings, node_id, architecture.reason)
            return clone
        attached = Attached(architecture, SettingsStack(architecture.resolutions))
        add_wrappers(clone)
        give_back_with(clone)
    acting = settings.start_after(attached.architecture.early)
    stack = attached.stack.add(AppliedNode(acting, node_id))
    options[KEY] = replace(attached, stack=stack)
    attached.architecture.patch(clone, stack)
    return clone


def check_model(name: str, model: object) -> None:
    """``model`` is what an input of this name takes; a link of any type may bring something else.

    Raises TypeError.
    """
    if not isinstance(model, ModelPatcher):
        raise TypeError(f"{name} is {type(model).__name__}, expected a MODEL")


def listen(model: ModelPatcher, listener: Callable[[Lines], None]) -> ModelPatcher:
    """A clone of ``model``; ``listener`` gets what our nodes did in each of its sampling runs.

    It is never called where the model has none of our nodes.
    """
    clone = model.clone()
    options = clone.model_options["transformer_options"]
    attached: Attached | None = options.get(KEY)
    if attached:
        options[KEY] = replace(attached, listeners=(*attached.listeners, listener))
    return clone


def _say(level: int, settings: Settings, node_id: str | None, text: str) -> None:
    logger.log(level, "%s: %s.", settings.node_name, text)
    write_on_node(node_id, text, SETTLED)


def _find_architecture(model: ModelPatcher) -> Architecture | Skipped:
    """Read off the model when the first node is applied: a compiled model is of another class."""
    diffusion_model = getattr(model.model, "diffusion_model", None)
    if isinstance(diffusion_model, UNetModel):
        return UNet.read(diffusion_model)
    kind = type(diffusion_model)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name in FAMILIES:
        return Transformer(FAMILIES[name])
    title, reason = SKIPPED_FAMILIES.get(name, (type(model.model).__name__, ""))
    # A pack may put a class of its own into a model that we know, as Nunchaku does with Flux.
    if pack := find_pack(kind.__module__):
        title = f"{title} as {pack} computes it"
    why = f". Why: {reason}" if reason else ""
    return Skipped(f"{title} is not supported: nothing is changed. See Node Info for the list{why}")
