"""How near attention on fewer keys comes to whole attention: with and without the log of sizes.

Fewer keys of the picture leave more of the softmax to the prompt; adding the log of the number of
tokens that a key stands for gives it back (``tome_core/proportional.py``). Measured on features of
photographs with Flux's positions. Projections and prompts are random: no checkpoint is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from comfy.ldm.flux.layers import EmbedND
from comfy.ldm.flux.math import apply_rope1
from comfy.ldm.modules.attention import attention_pytorch
from einops import rearrange
from token_merge.nodes.hooks.attention_call import AttentionCall
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    LayerTokens,
    MergeSettings,
    Plan,
    Settings,
    Skipped,
    Stream,
    TokenGrid,
    WindowPlan,
    plan_layer,
)
from torch import Tensor

from .. import settings
from .results import Correction
from .similarity import PHOTOGRAPHS, features, photograph

SHARPNESS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Factors on the scores, from diffuse to peaked attention."""
SIDE = 32
"""Of the grid of tokens."""
PROMPT_TOKENS = SIDE**2 // 8
"""As many beside a picture as Flux has at 1024 x 1024: 512 beside 4096."""
HEADS, CHANNELS = 4, 64
AXES = (16, 24, 24)
"""Channels of a head that carry the positions: none of a picture, its rows, its columns."""
FEATURES = 128


@dataclass(frozen=True)
class KeyReduction:
    """averaged: values are averaged, rather than chosen as keys are."""

    name: str
    settings: Settings
    averaged: bool

    def error(
        self, call: AttentionCall, stream: Stream, whole: Tensor, *, corrected: bool
    ) -> float:
        """Squared error of the picture's outputs, as a share of what they are squared."""
        plan = _plan(self.settings, stream, call.k)
        v = plan.merge(call.v) if self.averaged else plan.choose(call.v)
        fewer = replace(call, k=plan.choose(call.k), v=v)
        if corrected and plan.sizes is not None:
            out = fewer.run_with_mask(attention_pytorch, plan.sizes)
        else:
            out = fewer.run(attention_pytorch)
        return ((out - whole).square().sum() / whole.square().sum()).item()


def _plan(settings: Settings, stream: Stream, keys: Tensor) -> Plan:
    def find_metric() -> Tensor:
        return stream.take_picture(keys).mean(dim=1)  # (B, N, D)

    plan = plan_layer(
        settings, LayerTokens(stream, find_metric, Draws(("correction",), keys.device))
    )
    assert not isinstance(plan, Skipped | WindowPlan)
    return plan


MERGING = MergeSettings(settings.MERGE_KEYS.ratio, target="keys and values")
DOWNSAMPLING = DownsampleSettings(settings.DOWNSAMPLE_2.factor, method="area")
REDUCTIONS = tuple(
    KeyReduction(f"{name}, values {'averaged' if averaged else 'chosen'}", chosen, averaged)
    for name, chosen in (
        (f"downsample ×{settings.DOWNSAMPLE_2.factor}", DOWNSAMPLING),
        (f"merge {settings.RATIO}", MERGING),
    )
    for averaged in (False, True)
)


def measure(
    noise: float,
    sharpness: float,
    prompt_tokens: int,
    side: int = SIDE,
    photographs: Sequence[str] = PHOTOGRAPHS,
) -> list[Correction]:
    """Every reduction, mean over the photographs. prompt_tokens: 0 is the picture alone."""
    stream = Stream(TokenGrid(side, side), before=prompt_tokens)
    errors = {reduction.name: ([0.0], [0.0]) for reduction in REDUCTIONS}
    sharing = 0.0
    for name in photographs:
        tokens = features(photograph(name, 8 * side), noise)  # (1, N, FEATURES)
        call = picture_queries(tokens, stream, sharpness)
        whole = call.run(attention_pytorch)
        sharing += keys_that_share(call) / len(photographs)
        for reduction in REDUCTIONS:
            for corrected, sums in enumerate(errors[reduction.name]):
                error = reduction.error(call, stream, whole, corrected=bool(corrected))
                sums[0] += error / len(photographs)
    return [
        Correction(name, noise, sharpness, prompt_tokens, sharing, without[0], corrected[0])
        for name, (without, corrected) in errors.items()
    ]


def picture_queries(tokens: Tensor, stream: Stream, sharpness: float) -> AttentionCall:
    """The picture's queries to all keys, prompt first. tokens: (1, N, FEATURES) of the picture.

    Queries and keys are normed per head as Flux's are, and alike for tokens that are alike, so
    that a token attends most to those that resemble it.
    """
    generator = torch.Generator().manual_seed(0)
    to_q, own, to_v = (
        torch.randn(FEATURES, HEADS * CHANNELS, generator=generator) / FEATURES**0.5
        for _ in range(3)
    )
    to_k = (to_q + own) / 2**0.5
    prompt = torch.randn(1, stream.before, FEATURES, generator=generator)
    sequence = torch.cat([prompt, tokens], dim=1)  # (1, L, FEATURES)
    q, k, v = (
        rearrange(sequence @ weight, "b n (h d) -> b h n d", h=HEADS)
        for weight in (to_q, to_k, to_v)
    )
    rotation = _positions(stream)
    q, k = (apply_rope1(F.layer_norm(x, (CHANNELS,)), rotation) for x in (q, k))
    q = stream.take_picture(q) * sharpness
    return AttentionCall(q, k, v, HEADS, None, skip_output_reshape=True, options={})


def _positions(stream: Stream) -> Tensor:
    """Flux's rotations: of rows and columns for the picture, none for the prompt."""
    grid = stream.grid
    positions = torch.zeros(1, stream.length, len(AXES))
    token = torch.arange(grid.tokens)
    positions[0, stream.before :, 1] = token // grid.width
    positions[0, stream.before :, 2] = token % grid.width
    rotation: Tensor = EmbedND(dim=CHANNELS, theta=10000, axes_dim=list(AXES))(positions)
    return rotation


def keys_that_share(call: AttentionCall) -> float:
    """Among how many keys a query spreads its weight: e to the entropy, mean over queries."""
    logs = (call.q @ call.k.mT * CHANNELS**-0.5).log_softmax(dim=-1)  # (B, H, Nq, Nk)
    entropy = -(logs.exp() * logs).sum(dim=-1)
    return entropy.exp().mean().item()
