"""The rivals as patches of the small transformers, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from token_merge.nodes.hooks.attention.call import Attention, AttentionCall
from token_merge.nodes.hooks.attention.overrides import OVERRIDE_KEY
from torch import Tensor

from ...trained.motion import FRAMES
from ..effort import PAIRS, PROMPT_TOKENS
from ..patches import Patch, seedless
from . import int8, neighbourhood, sol_attention
from .neighbourhood import Sides
from .sol_attention import BLOCK, Routing


@dataclass(frozen=True)
class Picture:
    """Where it lies in the sequence of self-attention: behind ``before`` tokens of the prompt."""

    before: int
    frames: int

    def find_sides(self, length: int) -> Sides:
        side = isqrt((length - self.before) // self.frames)
        return self.frames, side, side


IN_FLUX, IN_WAN = Picture(PROMPT_TOKENS, 1), Picture(0, FRAMES)

Attend = Callable[[AttentionCall, Picture], tuple[Tensor, float]]
"""What computes a call: (B, H, L, D), and the pairs that one head of one row read."""


@dataclass(frozen=True)
class Rival:
    """picture: where it lies. start: of the schedule, this share is left as it is. takes_cross:
    whether it computes attention to the prompt alone, too.
    """

    attend: Attend
    picture: Picture
    start: float = 0.0
    takes_cross: bool = False

    def __call__(self, model: ModelPatcher) -> ModelPatcher:
        first = float(model.get_model_object("model_sampling").percent_to_sigma(self.start))

        def override(attention: Attention, *args: Any, **options: Any) -> Tensor:
            state = options["transformer_options"]
            call = AttentionCall.read(*args, **options)
            is_left = call.k.shape[2] == PROMPT_TOKENS and not self.takes_cross
            if is_left or float(state["sigmas"][0]) > first:
                return attention(*args, **options)
            out, state[PAIRS] = self.attend(call, self.picture)
            return call.shape_output(out)

        clone = model.clone()
        clone.model_options["transformer_options"][OVERRIDE_KEY] = override
        return clone


@dataclass(frozen=True)
class SolAttention:
    """tiled: whether tokens are laid in tiles first, so that a block of keys is 8 x 8 tokens."""

    routing: Routing
    tiled: bool = False

    def __call__(self, call: AttentionCall, picture: Picture) -> tuple[Tensor, float]:
        order = self.list_order(call.q.shape[2], picture)
        q, k, v = (x[:, :, order].flatten(0, 1).float() for x in (call.q, call.k, call.v))
        out, pairs = sol_attention.attend(q, k, v, self.routing, order < picture.before)
        back = order.argsort()
        return out[:, back].view_as(call.q).to(call.v.dtype), pairs

    def list_order(self, length: int, picture: Picture) -> Tensor:
        """(length,), tokens as they are, or tiles of the picture and then the prompt."""
        numbers = torch.arange(length)
        if not self.tiled:
            return numbers
        side = isqrt(BLOCK)
        frames, rows, columns = picture.find_sides(length)
        tiles = numbers[picture.before :].view(frames, rows // side, side, columns // side, side)
        return torch.cat([tiles.transpose(2, 3).flatten(), numbers[: picture.before]])


@dataclass(frozen=True)
class Neighbourhood:
    box: Sides

    def __call__(self, call: AttentionCall, picture: Picture) -> tuple[Tensor, float]:
        sides = picture.find_sides(call.q.shape[2])
        return neighbourhood.attend(call.q, call.k, call.v, sides, self.box, picture.before)


def attend_in_int8(call: AttentionCall, picture: Picture) -> tuple[Tensor, float]:
    """Every pair is read."""
    return int8.attend(call.q, call.k, call.v), float(call.q.shape[2] * call.k.shape[2])


def list_rivals(picture: Picture, share: float, box: Sides) -> dict[str, Patch]:
    """share, box: so that as many pairs are read as with Token Downsample x2."""
    by_default, highest = Routing(), Routing(share=share)
    found = {
        "Sol-Attn, core's defaults": Rival(SolAttention(by_default), picture, start=0.2),
        "Sol-Attn, from the first step": Rival(SolAttention(by_default), picture),
        "Sol-Attn, top-k": Rival(SolAttention(highest), picture),
        "Sol-Attn, top-k, 8 × 8 tiles": Rival(SolAttention(highest, tiled=True), picture),
        "neighbourhood attention": Rival(Neighbourhood(box), picture),
        "INT8 of all attention": Rival(attend_in_int8, picture, takes_cross=True),
    }
    return {name: seedless(rival) for name, rival in found.items()}


ON_FLUX = list_rivals(IN_FLUX, share=0.14, box=(1, 30, 30))
ON_WAN = list_rivals(IN_WAN, share=0.19, box=(5, 13, 13))
