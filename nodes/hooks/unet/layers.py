"""The self-attention layers of a UNet, and how much each is downsampled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from comfy.ldm.modules.attention import SpatialTransformer
from comfy.ldm.modules.diffusionmodules.openaimodel import Downsample, UNetModel, Upsample
from torch import nn

from ....tome_core.query_groups import MOST_GROUPS

LayerKey = tuple[str, int, int]


@dataclass(frozen=True)
class SelfAttentionLayer:
    """One spatial transformer block with self-attention.

    Args:
        block, number, index: as ComfyUI names the block in ``extra_options``, such as input 1, 0.
        downsample: the latent's side over the layer's side: 1, 2, 4 or 8.
        channels: of a token in attention, all heads together.
        path: the block's name inside the UNet.
    """

    block: str
    number: int
    index: int
    downsample: int
    channels: int
    path: str

    local_window = 0
    most_groups = MOST_GROUPS

    @property
    def key(self) -> LayerKey:
        return (self.block, self.number, self.index)

    def __str__(self) -> str:
        return f"{self.block} {self.number}.{self.index}"


def list_layers(unet: UNetModel) -> tuple[SelfAttentionLayer, ...]:
    """Self-attention layers in the order in which they run.

    Read off the modules, not off token counts: blocks without self-attention (SDXL's finest
    level) and blocks whose first attention reads the prompt (the x4 upscaler) are left out.
    """
    layers: list[SelfAttentionLayer] = []
    downsample = 1
    for block, number, path, module in _stages(unet):
        if isinstance(module, SpatialTransformer):
            layers += [
                SelfAttentionLayer(
                    block,
                    number,
                    index,
                    downsample,
                    transformer.attn1.heads * transformer.attn1.dim_head,
                    f"{path}.transformer_blocks.{index}",
                )
                for index, transformer in enumerate(module.transformer_blocks)
                if not transformer.disable_self_attn
            ]
        elif _contains(module, Downsample):
            downsample *= 2
        elif _contains(module, Upsample):
            downsample //= 2
    return tuple(layers)


def _stages(unet: UNetModel) -> Iterator[tuple[str, int, str, nn.Module]]:
    """Every module of the input, middle and output blocks: block, number, path, module."""
    for block in ("input", "output"):
        for number, stage in enumerate(getattr(unet, f"{block}_blocks")):
            for position, module in enumerate(stage):
                yield block, number, f"{block}_blocks.{number}.{position}", module
        if block == "input" and unet.middle_block is not None:
            for position, module in enumerate(unet.middle_block):
                yield "middle", 0, f"middle_block.{position}", module


def _contains(module: nn.Module, kind: type[nn.Module]) -> bool:
    return any(isinstance(part, kind) for part in module.modules())
