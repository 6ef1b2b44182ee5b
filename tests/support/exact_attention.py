"""One reduced attention call of a transformer, and what it would give without rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pytest
import torch
from comfy.ldm.modules.attention import attention_pytorch
from token_merge.nodes.hooks.attention import backend
from token_merge.nodes.hooks.attention.plan_attention import plan_attention
from token_merge.nodes.hooks.run.state import KEY, Attached, ModelCall, Run
from token_merge.nodes.hooks.settings_stack import AppliedNode, SettingsStack
from token_merge.nodes.hooks.transformer import attention
from token_merge.nodes.hooks.transformer.attach import Transformer
from token_merge.nodes.hooks.transformer.call import TransformerCall
from token_merge.nodes.hooks.transformer.families import FAMILIES
from token_merge.nodes.hooks.transformer.sequence import read_layout
from token_merge.tome_core import Settings, Stream
from token_merge.tome_core.plan_layer import LayerPlan
from token_merge.tome_core.windows import attend_densely
from torch import Tensor

from .unets import build_unet

FLUX = FAMILIES["comfy.ldm.flux.model.Flux"]


@dataclass(frozen=True)
class Shape:
    """stream: the prompt's tokens and the picture's. channels: of each head."""

    stream: Stream
    heads: int
    channels: int

    @cached_property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of a smooth picture, in float64. Keys are near their query's.

        Scores have a standard deviation of about 2, so a query reads some keys much more than
        others.
        """
        generator = torch.Generator().manual_seed(0)
        grid = self.stream.grid
        rough = torch.randn(3 * self.heads * self.channels, 8, 8, generator=generator)
        smooth = torch.nn.functional.interpolate(
            rough[None], (grid.height, grid.width), mode="bicubic"
        )
        picture = smooth[0].flatten(1).unflatten(0, (3, 1, self.heads, self.channels)).mT
        picture = picture + 0.3 * torch.randn(picture.shape, generator=generator)
        prompt = torch.randn(
            3, 1, self.heads, self.stream.before, self.channels, generator=generator
        )
        q, k, v = torch.cat([prompt, picture], dim=-2).double()
        q = (q + k) * math.sqrt(2)
        return q, k, v


@dataclass(frozen=True)
class ReducedCall:
    """Tensors as they were given, and what came of them. plan: what was reduced."""

    q: Tensor
    k: Tensor
    v: Tensor
    out: Tensor
    plan: LayerPlan

    def find_exact(self) -> Tensor:
        """The same mean of the same tokens in float64. (1, L, H·D)"""
        plan, scale = self.plan, self.q.shape[-1] ** -0.5
        q, k, v = (x.double() for x in (self.q, self.k, self.v))
        if plan.window:
            return join(attend_densely(plan.window, q, k, v, None, scale))
        q, k, v = plan.reduce_heads(q, k, v)
        scores = q @ k.mT * scale
        if plan.sizes is not None:
            scores = scores + plan.sizes.double().log()[:, None, None]
        return join(plan.restore(scores.softmax(-1) @ v))


def join(x: Tensor) -> Tensor:
    """(1, H, L, D) -> (1, L, H·D)."""
    return x.transpose(1, 2).flatten(2)


def attend_reduced(
    shape: Shape,
    several: Sequence[Settings],
    tensors: tuple[Tensor, Tensor, Tensor],
    monkeypatch: pytest.MonkeyPatch,
    *,
    masks_are_free: bool = True,
) -> ReducedCall:
    """A call of ComfyUI's attention as a block of Flux makes it, with these settings on the model.

    masks_are_free: as on a CPU; False as on a GPU.
    """
    found: list[LayerPlan] = []

    def plan_and_keep(*args: object) -> LayerPlan | None:
        plan = plan_attention(*args)
        assert plan
        found.append(plan)
        return plan

    q, k, v = tensors
    stack = SettingsStack((1,), tuple(map(AppliedNode, several)))
    sigma = 0.7
    run = Run((1.0, 0.0))
    acting = {1: stack.find_acting(several, 1)}
    model = ModelCall(stack, tuple(several), acting, run.draw_index.find(0, sigma, 0), run)
    flux, stream = build_unet("Flux").model.diffusion_model, shape.stream
    height, width = (flux.patch_size * side for side in (stream.grid.height, stream.grid.width))
    latent, prompt = torch.empty(1, 4, height, width), torch.empty(1, stream.before, 32)
    layout = read_layout(FLUX, flux, latent, prompt, {})
    call = TransformerCall(model, layout, 0, None, set(), lambda kind, number: 1)
    options = {KEY: replace(Attached(Transformer(FLUX), stack, run=run), call=call)}
    with monkeypatch.context() as patching:
        patching.setattr(attention, "plan_attention", plan_and_keep)
        patching.setattr(backend, "masks_are_free", lambda device: masks_are_free)
        out = attention.attend(
            attention_pytorch,
            q,
            k,
            v,
            shape.heads,
            skip_reshape=True,
            transformer_options={**options, "block_index": 0, "block_type": "double"},
        )
    return ReducedCall(q, k, v, out, found[0])
