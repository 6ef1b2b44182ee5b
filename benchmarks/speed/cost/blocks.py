"""One block of a model at full width, as ComfyUI has it, on any device; here those of UNets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import comfy.ops
import torch
from comfy.ldm.modules.attention import BasicTransformerBlock
from comfy.model_patcher import ModelPatcher
from token_merge.tome_core import Stream, TokenGrid
from torch import Tensor, nn

from ..environment import Environment
from ..sampling import PROMPT_TOKENS, Request
from ..unets import UNETS

HOST = Environment(torch.device("cpu"), narrow=True)
"""Of the model whose sampling calls the block; its own layers do not run."""

OPERATIONS = comfy.ops.disable_weight_init


@dataclass(frozen=True)
class Prepared:
    """module: the block. inputs: what it is called with. options: what the model adds to
    transformer_options before it calls the block. cross_attention: the part of it that reads the
    prompt alone, if there is one.
    """

    module: nn.Module
    inputs: dict[str, Tensor]
    options: dict[str, Any]
    cross_attention: nn.Module | None = None


class Block(Protocol):
    """A block at one size of the picture."""

    @property
    def stream(self) -> Stream:
        """What self-attention reads."""

    @property
    def request(self) -> Request:
        """The call of the model that the block belongs to."""

    def build_host(self) -> ModelPatcher:
        """A small model on the CPU of the same family."""

    def prepare(self, device: torch.device, dtype: torch.dtype) -> Prepared:
        """The block and random inputs."""


@dataclass(frozen=True)
class UNetBlock:
    """A transformer block of a UNet. height, width: in tokens, and in cells of the latent.

    Two rows: the prompt and the negative prompt.
    """

    channels: int
    heads: int
    context: int
    height: int
    width: int

    rows = 2

    @property
    def stream(self) -> Stream:
        return Stream(TokenGrid(self.height, self.width))

    @property
    def request(self) -> Request:
        context = UNETS["sd15"].config_in(HOST)["context_dim"]
        return Request(8 * self.height, 8 * self.width, guided=True, context=context)

    def build_host(self) -> ModelPatcher:
        return UNETS["sd15"].build(HOST)

    def prepare(self, device: torch.device, dtype: torch.dtype) -> Prepared:
        kind: dict[str, Any] = {"device": device, "dtype": dtype}
        size = self.channels, self.heads, self.channels // self.heads
        block = BasicTransformerBlock(
            *size, context_dim=self.context, operations=OPERATIONS, **kind
        )
        inputs = {
            "x": torch.randn(self.rows, self.stream.length, self.channels, **kind),
            "context": torch.randn(self.rows, PROMPT_TOKENS, self.context, **kind),
        }
        options = {
            "block": ("input", 1),
            "block_index": 0,
            "original_shape": [self.rows, 4, self.height, self.width],
            "activations_shape": [self.rows, self.channels, self.height, self.width],
        }
        return Prepared(block, inputs, options, block.attn2)
