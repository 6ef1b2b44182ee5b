"""Token reduction in UNets: SD 1.x, 2.x, SDXL, SSD-1B and SVD's spatial layers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from comfy.ldm.modules.diffusionmodules.openaimodel import UNetModel
from comfy.model_patcher import ModelPatcher

from ....tome_core.settings import Settings
from ..attention_call import OVERRIDE_KEY
from ..model_call import ModelCall, ModelInputs, add_call
from ..settings_stack import SettingsStack
from .call import CURRENT_CALL, UNetCall
from .feed_forward import patch_feed_forward
from .layers import SelfAttentionLayer, list_layers
from .patches import add_patches
from .sizes import stays_whole


@dataclass(frozen=True)
class UNet:
    """layers: those with self-attention, in the order in which they run."""

    layers: tuple[SelfAttentionLayer, ...]

    @classmethod
    def read(cls, unet: UNetModel) -> UNet:
        return cls(list_layers(unet))

    @property
    def resolutions(self) -> tuple[int, ...]:
        return tuple(sorted({layer.downsample for layer in self.layers}))

    def check(self, settings: Settings) -> tuple[str, ...]:
        """Every input acts on a UNet."""
        return ()

    def patch(self, model: ModelPatcher, stack: SettingsStack) -> None:
        for layer in self.layers:
            for settings in stack.settings:
                if "tokens of the MLP" in settings.find_parts(layer.downsample, stack.resolutions):
                    patch_feed_forward(model, layer)

    @contextmanager
    def reduce(self, call: ModelCall, inputs: ModelInputs) -> Iterator[dict[str, Any]]:
        unet, options = inputs.base_model.diffusion_model, inputs.options
        frames = inputs.conditioning.get("num_video_frames", unet.default_num_video_frames)
        replaced = options.get("patches_replace", {})
        earlier = options.get(OVERRIDE_KEY)
        unet_call = UNetCall(
            model=call,
            unet=unet,
            layers={
                layer.key: layer for layer in self.layers if call.find_acting(layer.downsample)
            },
            frames=frames,
            replaced={name: frozenset(replaced.get(name, ())) for name in ("attn1", "attn2")},
            earlier=earlier,
            whole=call.find_whole(inputs.latent.device, earlier is None),
        )
        if not stays_whole(call.run, call.stack, self.layers, inputs.latent):
            options = add_call(add_patches(options, call.stack), unet_call)
        outer = CURRENT_CALL.set(unet_call)
        try:
            yield options
        finally:
            CURRENT_CALL.reset(outer)
