"""The self-attention layers of a UNet, and how much each is downsampled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from comfy.ldm.modules.attention import SpatialTransformer
from comfy.ldm.modules.diffusionmodules.openaimodel import Downsample, UNetModel, Upsample
from torch import Tensor, nn

from ....tome_core.constants import constant
from ....tome_core.grid import Stream, TokenGrid
from ....tome_core.layer import Layer

LayerKey = tuple[str, int, int]


@dataclass(frozen=True)
class SelfAttentionLayer:
    """One spatial transformer block with self-attention.

    Args:
        block, number, index: as ComfyUI names the block in ``extra_options``, such as input 1, 0.
        downsample: the latent's side over the layer's side: 1, 2, 4 or 8.
        channels: of a token in attention, all heads together.
        head_channels: of one head.
        path: the block's name inside the UNet.
    """

    block: str
    number: int
    index: int
    downsample: int
    channels: int
    head_channels: int
    path: str

    @cached_property
    def key(self) -> LayerKey:
        return (self.block, self.number, self.index)

    @constant
    def measure(
        self,
        height: int,
        width: int,
        resolutions: tuple[int, ...],
        device: torch.device,
        dtype: torch.dtype,
    ) -> Layer:
        """The layer with activations of height x width tokens.

        resolutions: of all layers of the UNet, finest first. dtype: in which it computes.
        """
        return Layer(
            Stream(TokenGrid(height, width)),
            device,
            self.downsample,
            resolutions,
            self.channels,
            dtype=dtype,
            head_channels=self.head_channels,
        )

    def measure_from(
        self, latent: Tensor, resolutions: tuple[int, ...], dtype: torch.dtype
    ) -> Layer:
        """The layer before the UNet is called. latent: (B, C, H, W). dtype: in which it computes.

        Another node may have the UNet compute fewer tokens than the latent tells, and then reducing
        them would save even less; or more, and then they are not reduced, too.
        """
        # A UNet rounds up where it halves an odd side.
        height, width = (-(-side // self.downsample) for side in latent.shape[-2:])
        return self.measure(height, width, resolutions, latent.device, dtype)

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
                    transformer.attn1.dim_head,
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
