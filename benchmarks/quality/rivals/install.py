"""The rivals as patches of the small transformers, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from token_merge.nodes.hooks.attention.call import Attention, AttentionCall
from token_merge.nodes.hooks.attention.override_table import ENTRIES, SAGE
from token_merge.nodes.hooks.attention.overrides import OVERRIDE_KEY
from token_merge.tome_core.faster_forms import FORMS, Form
from token_merge.tome_core.windows import int8 as windows_in_int8
from torch import Tensor

from ...trained.wan import FRAMES
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
    whether it computes attention to the prompt alone, too. known_as: the name of another node's
    attention, for which our nodes take it.
    """

    attend: Attend
    picture: Picture
    start: float = 0.0
    takes_cross: bool = False
    known_as: str = ""

    def __call__(self, model: ModelPatcher) -> ModelPatcher:
        first = float(model.get_model_object("model_sampling").percent_to_sigma(self.start))

        def override(attention: Attention, *args: Any, **options: Any) -> Tensor:
            state = options["transformer_options"]
            call = AttentionCall.read(*args, **options)
            is_left = call.k.shape[2] == PROMPT_TOKENS and not self.takes_cross
            if is_left or (self.start and float(state["sigmas"][0]) > first):
                return attention(*args, **options)
            out, state[PAIRS] = self.attend(call, self.picture)
            return call.shape_output(out)

        if self.known_as:
            entry = next(each for each in ENTRIES if each.name == self.known_as)
            override.__module__, override.__qualname__ = entry.module, entry.qualname
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
        """(length,), the picture row by row or in tiles, and then the prompt.

        In front of the picture, a prompt of 77 tokens would shift all blocks by part of a row.
        """
        numbers = torch.arange(length)
        prompt, places = numbers[: picture.before], numbers[picture.before :]
        if self.tiled:
            side = isqrt(BLOCK)
            frames, rows, columns = picture.find_sides(length)
            tiles = places.view(frames, rows // side, side, columns // side, side)
            places = tiles.transpose(2, 3).flatten()
        return torch.cat([places, prompt])


@dataclass(frozen=True)
class Neighbourhood:
    box: Sides

    def __call__(self, call: AttentionCall, picture: Picture) -> tuple[Tensor, float]:
        sides = picture.find_sides(call.q.shape[2])
        return neighbourhood.attend(call.q, call.k, call.v, sides, self.box, picture.before)


def attend_in_int8(call: AttentionCall, picture: Picture) -> tuple[Tensor, float]:
    """Every pair is read."""
    return int8.attend(call.q, call.k, call.v), float(call.q.shape[2] * call.k.shape[2])


INT8 = "INT8 of all attention"


def list_rivals(picture: Picture, share: float, box: Sides) -> dict[str, Patch]:
    """share, box: so that as many pairs are read as with Token Downsample x2."""
    by_default, highest = Routing(), Routing(share=share)
    found = {
        "Sol-Attn, core's defaults": Rival(SolAttention(by_default), picture, start=0.2),
        "Sol-Attn, from the first step": Rival(SolAttention(by_default), picture),
        "Sol-Attn, top-k": Rival(SolAttention(highest), picture),
        "Sol-Attn, top-k, 8 × 8 tiles": Rival(SolAttention(highest, tiled=True), picture),
        "neighbourhood attention": Rival(Neighbourhood(box), picture),
        INT8: Rival(attend_in_int8, picture, takes_cross=True, known_as=SAGE),
    }
    return {name: seedless(rival) for name, rival in found.items()}


ON_FLUX = list_rivals(IN_FLUX, share=0.14, box=(1, 30, 30))
ON_WAN = list_rivals(IN_WAN, share=0.23, box=(7, 19, 19))


IN_INT8 = Form(
    windows_in_int8.attend_in_int8,
    takes=lambda plan, *_: bool(plan.precision == "int8"),
    why_unavailable=lambda _, *call: "" if "int8" in call else "there is no GPU",
    device_type="cpu",
)
"""What our kernel computes, on a processor."""


def put_beside_int8(ours: Patch, rivals: dict[str, Patch]) -> Patch:
    """Our node on a model whose attention is in INT8, which makes its local windows so, too."""

    def patch(model: ModelPatcher, *, seed: int = 0) -> ModelPatcher:
        both = ours(rivals[INT8](model), seed=seed)
        if model.load_device.type == "cpu":
            both.add_wrapper(WrappersMP.OUTER_SAMPLE, _compute_in_int8)
        return both

    return patch


def _compute_in_int8(executor: WrapperExecutor, *args: Any, **kwargs: Any) -> Tensor:
    before = FORMS["windows.attend"]
    FORMS["windows.attend"] = IN_INT8
    try:
        out: Tensor = executor(*args, **kwargs)
    finally:
        FORMS["windows.attend"] = before
    return out
