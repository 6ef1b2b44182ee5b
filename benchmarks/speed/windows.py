"""Both nodes with local windows, and the structural limit of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from token_merge.nodes.hooks.attention.call import Attention, AttentionCall
from token_merge.nodes.hooks.attention.overrides import OVERRIDE_KEY
from token_merge.nodes.hooks.transformer.attention import LOCAL_WINDOW
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    Layer,
    MergeSettings,
    Settings,
    Stream,
    WindowPlan,
    plan_layer,
)
from token_merge.tome_core.tokens import join_heads
from torch import Tensor

from .. import ours
from ..settings import MERGE, Setting

SIDE = LOCAL_WINDOW
"""The window has this side in tokens: the node's choice on transformers."""

WINDOWS_2, WINDOWS_3, WINDOWS_4 = (
    Setting(f"local windows, downsample ×{factor} beyond", "keys and values", factor=factor)
    for factor in (2, 3, 4)
)
WINDOWS_MERGE = replace(MERGE, name=f"local windows, {MERGE.ratio} of the queries merged beyond")
WINDOWS = (WINDOWS_2, WINDOWS_3, WINDOWS_4, WINDOWS_MERGE)


def with_windows(model: ModelPatcher, setting: Setting) -> ModelPatcher:
    node = ours.token_merge if setting.ratio else ours.token_downsample
    return node(model, setting, local_window=str(SIDE))


def with_tiles_cut_out(model: ModelPatcher, setting: Setting, stream: Stream) -> ModelPatcher:
    """A clone with as many pairs of queries and keys, at the least cost there is.

    Queries in a row are a tile, and every tile reads the same first keys. Nothing is drawn,
    gathered or joined, and no key has a weight.
    """
    plan = plan_windows(setting, stream, torch.device("cpu"))
    tiles, keys = len(plan.geometry.queries), plan.keys_read

    def cut(attention: Attention, *args: Any, **options: Any) -> Tensor:
        call = AttentionCall.read(*args, **options)
        if call.k.shape[2] != stream.length:
            return attention(*args, **options)  # to the prompt
        size = stream.length // tiles
        tiled = call.q[0, :, : size * tiles].unflatten(1, (tiles, size)).transpose(0, 1)
        fewer = (x[:, :, :keys].expand(tiles, -1, -1, -1) for x in (call.k, call.v))
        shapes = {"skip_reshape": True, "skip_output_reshape": True}
        parts = attention(tiled, *fewer, call.heads, **shapes, **call.options)  # (T, H, Q, D)
        out = parts.transpose(0, 1).flatten(1, 2)[None]  # (1, H, T·Q, D)
        out = torch.cat([out, out[:, :, : stream.length - size * tiles]], dim=2)
        return out if call.skip_output_reshape else join_heads(out)

    clone = model.clone()
    clone.model_options["transformer_options"][OVERRIDE_KEY] = cut
    return clone


def plan_windows(setting: Setting, stream: Stream, device: torch.device) -> WindowPlan:
    # Given, not chosen by the node, so that small pictures have windows on a GPU, too.
    settings: Settings = (
        MergeSettings(ratio=setting.ratio, local_window=SIDE)
        if setting.ratio
        else DownsampleSettings(factor=float(setting.factor), local_window=SIDE)
    )
    layer = Layer(stream, device, local_window=SIDE)
    tokens = torch.ones(1, stream.length, 8, device=device)
    plans = plan_layer(settings, ["keys and values"], layer, Draws(("benchmark",), device), tokens)
    assert isinstance(plans, dict)
    plan = plans["keys and values"]
    assert isinstance(plan, WindowPlan)
    return plan
