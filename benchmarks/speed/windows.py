"""Token Downsample with local windows, and the structural limit of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from token_merge.nodes.hooks.attention_call import OVERRIDE_KEY
from token_merge.nodes.hooks.transformer.attention import Block
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    LayerTokens,
    Stream,
    WindowPlan,
    plan_layer,
)
from torch import Tensor

from .. import ours
from ..settings import Setting
from .attention_watch import tokens_dim

SIDE = Block.local_window
"""Of the window, in tokens: the node's choice on transformers."""

WINDOWS_2, WINDOWS_3 = (
    Setting(f"local windows, downsample ×{factor} beyond", "keys and values", factor=factor)
    for factor in (2, 3)
)


def with_windows(model: ModelPatcher, setting: Setting) -> ModelPatcher:
    return ours.token_downsample(model, setting, local_window=str(SIDE))


def with_tiles_cut_out(model: ModelPatcher, setting: Setting, stream: Stream) -> ModelPatcher:
    """A clone with as many pairs of queries and keys, at the least cost there is.

    Queries in a row are a tile, and every tile reads the same first keys. Nothing is drawn,
    gathered or joined, and no key has a weight.
    """
    plan = plan_windows(setting, stream, torch.device("cpu"))
    tiles, keys = plan.window.tiles, plan.slots

    def cut(
        attention: Callable[..., Tensor],
        q: Tensor,
        k: Tensor,
        v: Tensor,
        heads: int,
        **options: Any,
    ) -> Tensor:
        if k.shape[tokens_dim(options)] != stream.length:
            return attention(q, k, v, heads, **options)  # to the prompt
        if not options.pop("skip_reshape", False):
            q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
        joins = not options.pop("skip_output_reshape", False)
        size = stream.length // tiles
        tiled = q[0, :, : size * tiles].unflatten(1, (tiles, size)).transpose(0, 1)  # (T, H, Q, D)
        fewer = (x[:, :, :keys].expand(tiles, -1, -1, -1) for x in (k, v))
        parts = attention(
            tiled, *fewer, heads, skip_reshape=True, skip_output_reshape=True, **options
        )
        out = parts.transpose(0, 1).flatten(1, 2)[None]  # (1, H, T·Q, D)
        out = torch.cat([out, out[:, :, : stream.length - size * tiles]], dim=2)
        return out.transpose(1, 2).flatten(2) if joins else out

    clone = model.clone()
    clone.model_options["transformer_options"][OVERRIDE_KEY] = cut
    return clone


def plan_windows(setting: Setting, stream: Stream, device: torch.device) -> WindowPlan:
    draws = Draws(("benchmark",), device)
    layer = LayerTokens(stream, lambda: torch.empty(0), draws, local_window=SIDE)
    # Given, not chosen by the node, so that small pictures have windows on a GPU, too.
    plan = plan_layer(DownsampleSettings(factor=float(setting.factor), local_window=SIDE), layer)
    assert isinstance(plan, WindowPlan)
    return plan
