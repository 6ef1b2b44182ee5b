"""Token reduction in UNets: SD 1.x, 2.x, SDXL, SSD-1B and SVD's spatial layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from comfy.ldm.modules.diffusionmodules.openaimodel import UNetModel
from comfy.model_patcher import ModelPatcher

from ....tome_core.plan_layer import explain_unreduced
from ....tome_core.settings import Settings
from ..attention.overrides import find_override
from ..attention.preferred import find_preferred
from ..run.state import ModelCall, ModelInputs, add_call
from ..settings_stack import SettingsStack
from .call import UNetCall
from .feed_forward import patch_feed_forward
from .layers import SelfAttentionLayer, list_layers
from .patches import add_patches


@dataclass(frozen=True)
class UNet:
    """layers: those with self-attention, in the order in which they run."""

    layers: tuple[SelfAttentionLayer, ...]

    early = 0.0

    @classmethod
    def read(cls, unet: UNetModel) -> UNet:
        return cls(list_layers(unet))

    @cached_property
    def resolutions(self) -> tuple[int, ...]:
        return tuple(sorted({layer.downsample for layer in self.layers}))

    def list_remarks(self, settings: Settings) -> tuple[str, ...]:
        """No input is named.

        temporal_factor has no effect on UNets, nor has local_window in Token Merge, and their
        tooltips say so.
        """
        return ()

    def patch(self, model: ModelPatcher, stack: SettingsStack) -> None:
        for layer in self.layers:
            for settings in stack.settings:
                targets = settings.find_targets(layer.downsample, stack.resolutions)
                if "tokens of the MLP" in targets:
                    patch_feed_forward(model, layer)

    def reduce(self, call: ModelCall, inputs: ModelInputs) -> dict[str, Any]:
        unet, options = inputs.base_model.diffusion_model, inputs.options
        frames = inputs.conditioning.get("num_video_frames", unet.default_num_video_frames)
        replaced = options.get("patches_replace", {})
        override = find_override(inputs)
        unet_call = UNetCall(
            model=call,
            unet=unet,
            layers={layer.key: layer for layer in self.layers if call.acting[layer.downsample]},
            frames=frames,
            replaced={name: frozenset(replaced.get(name, ())) for name in ("attn1", "attn2")},
            override=override,
            preferred=find_preferred(unet, call.run),
            unreduced=call.find_unreduced(inputs.latent.device, override and override.name),
        )
        # Patches are added in every step, active or not: a compiled model keeps what it saw first.
        if not self._is_unreduced(unet_call, inputs):
            options = add_patches(options, call.stack)
        return add_call(options, unet_call)

    @cached_property
    def _alike(self) -> tuple[tuple[SelfAttentionLayer, ...], ...]:
        """Layers of one size, whatever the latent."""
        found: dict[tuple[int, int], tuple[SelfAttentionLayer, ...]] = {}
        for layer in self.layers:
            size = layer.downsample, layer.channels
            found[size] = (*found.get(size, ()), layer)
        return tuple(found.values())

    def _is_unreduced(self, call: UNetCall, inputs: ModelInputs) -> bool:
        """Whether every setting leaves all its layers alone at this size of the latent.

        The report is told why.
        """
        reasons, dtype = [], inputs.base_model.get_dtype_inference()
        for settings in call.model.stack.settings:
            for alike in self._alike:
                if not settings.find_targets(alike[0].downsample, self.resolutions):
                    continue
                layer = alike[0].measure_from(inputs.latent, self.resolutions, dtype)
                if not (reason := explain_unreduced(settings, call.add_speed(layer))):
                    return False
                reasons += [(settings, reason, each) for each in alike]
        for each in reasons:
            call.model.run.report.say(*each)
        return True
