"""What Qwen-Image 2.1 asks of attention, in a ComfyUI that is later than the tested ones."""

from __future__ import annotations

from typing import Any

import torch
from comfy.ldm.modules.attention import optimized_attention
from comfy.model_base import BaseModel
from torch import Tensor, nn

from ..comfyui_version import known
from .image_settings import LUMINA
from .small_model import References, SmallModel

WIDTH, HEADS, BLOCKS = 64, 2, 3


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, parts: list[tuple[int, int, bool]], options: Any) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        outs = []
        for start, stop, is_text in parts:
            mask = torch.ones(stop - start, stop, dtype=torch.bool).tril(start) if is_text else None
            seen = k[:, :stop], v[:, :stop]
            part = optimized_attention(
                q[:, start:stop], *seen, HEADS, mask=mask, transformer_options=options
            )
            outs.append(part)
        return x + self.out(torch.cat(outs, dim=1))


class QwenImage21Transformer2DModel(nn.Module):
    """A stand-in, written from what that model does: the prompt, each reference and the picture
    attend one after the other, each to itself and to all before it.
    """

    dtype = torch.float32

    def __init__(self) -> None:
        super().__init__()
        self.txt_in = nn.Linear(24, WIDTH)
        self.img_in = nn.Linear(16, WIDTH)
        self.transformer_blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.proj_out = nn.Linear(WIDTH, 16)

    def forward(
        self,
        x: Tensor,
        timestep: Tensor,
        context: Tensor,
        ref_latents: list[Tensor] | None = None,
        transformer_options: Any = None,
        **others: Any,
    ) -> Tensor:
        pictures = [self.img_in(each.flatten(2).mT) for each in (*(ref_latents or ()), x)]
        parts, start = [(0, context.shape[1], True)], context.shape[1]
        for picture in pictures:
            parts.append((start, start + picture.shape[1], False))
            start += picture.shape[1]
        tokens = torch.cat([self.txt_in(context), *pictures], dim=1)
        tokens = tokens + timestep[:, None, None] * tokens.roll(1, dims=2)
        for number, block in enumerate(self.transformer_blocks):
            transformer_options.update(block_index=number, block_type="single")
            tokens = block(tokens, parts, transformer_options)
        return self.proj_out(tokens[:, parts[-1][0] :]).mT.reshape(x.shape)


QwenImage21Transformer2DModel.__module__ = "comfy.ldm.qwen_image21.model"


class StandIn(known.Lumina2):
    """Lumina 2's conditioning has all that the model reads."""

    def get_model(self, *args: Any, **kwargs: Any) -> BaseModel:
        model = super().get_model(*args, **kwargs)
        model.diffusion_model = QwenImage21Transformer2DModel().requires_grad_(False)
        return model


QWEN_IMAGE_21, QWEN_IMAGE_21_EDIT = (
    SmallModel(name, StandIn, LUMINA, 16, (1, 1), 24, references=references)
    for name, references in (
        ("Qwen-Image 2.1", None),
        ("Qwen-Image 2.1 with references", References()),
    )
)
