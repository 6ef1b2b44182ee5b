"""Token reduction in UNets: SD 1.x, 2.x, SDXL, SSD-1B and SVD's spatial layers."""

from __future__ import annotations

from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from torch import Tensor

from ...tome_core.settings import Settings
from .attention_call import OVERRIDE_KEY
from .composition import Reduction
from .feed_forward import MergedFeedForward
from .run_state import CURRENT_CALL, UNetCall
from .sampling_run import REDUCTION_KEY, model_call, wrap_run
from .unet_layers import self_attention_layers
from .unet_patches import with_patches

LAYERS_KEY = "token_merge_layers"


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
        options[LAYERS_KEY] = {layer.key: layer for layer in layers}
        reduction = Reduction(tuple(sorted({layer.downsample for layer in layers})))
        model.add_wrapper_with_key(WrappersMP.OUTER_SAMPLE, REDUCTION_KEY, wrap_run)
        model.add_wrapper_with_key(WrappersMP.APPLY_MODEL, REDUCTION_KEY, wrap_model_call)
    options[REDUCTION_KEY] = reduction.with_settings(settings)
    for layer in options[LAYERS_KEY].values():
        if "mlp" in reduction.roles(settings, layer.downsample):
            _merge_feed_forward(model, f"{layer.path}.ff.forward", layer.key)


def _merge_feed_forward(model: ModelPatcher, name: str, layer: tuple[str, int, int]) -> None:
    forward = model.get_model_object(name)
    if not isinstance(forward, MergedFeedForward):
        model.add_object_patch(name, MergedFeedForward(forward, layer))


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
    """APPLY_MODEL wrapper: installs the patches for this call alone."""
    base_model = executor.class_obj
    replacements = transformer_options.get("patches_replace", {})
    with model_call(base_model, t, transformer_options) as basics:
        call = UNetCall(
            **vars(basics),
            layers=transformer_options[LAYERS_KEY],
            frames=kwargs.get(
                "num_video_frames", base_model.diffusion_model.default_num_video_frames
            ),
            replaced={name: frozenset(replacements.get(name, ())) for name in ("attn1", "attn2")},
            earlier=transformer_options.get(OVERRIDE_KEY),
        )
        options = with_patches(transformer_options, call)
        outer = CURRENT_CALL.set(call)
        try:
            return executor(x, t, c_concat, c_crossattn, control, options, **kwargs)
        finally:
            CURRENT_CALL.reset(outer)
