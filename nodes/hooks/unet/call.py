"""One call of a UNet, and what its running block was given."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import comfy.ldm.modules.attention as comfy_attention
from torch import Tensor, nn

from ....tome_core.layer import Layer
from ....tome_core.merging import SlotPlan
from ....tome_core.plan_layer import LayerPlan
from ....tome_core.windows.plan import WindowPlan
from ..attention.backend import Backend
from ..attention.call import Attention
from ..attention.overrides import Override
from ..run.state import ModelCall
from .layers import LayerKey, SelfAttentionLayer


@dataclass
class RunningBlock:
    """What the block that runs was given.

    Each hook takes its part away, so that no plan outlives its use: memory peaks in the MLP.

    Args:
        layer: the block's self-attention.
        sizes: tokens that each key of self-attention stands for.
        window: keys of self-attention that are exact near each query.
        outputs: plans that give the output of self-attention back to every token.
        cross_attention, mlp: plans of the queries and of the tokens there.
        given: the keys and values that we made for the projections of self-attention.
    """

    layer: SelfAttentionLayer
    sizes: Tensor | None
    window: WindowPlan | None
    outputs: LayerPlan | None
    cross_attention: SlotPlan | None
    mlp: SlotPlan | None
    given: tuple[Tensor, ...]

    @classmethod
    def begin(
        cls, layer: SelfAttentionLayer, plan: LayerPlan, given: tuple[Tensor, ...]
    ) -> RunningBlock:
        # Without the plan of the keys, which must be gone when memory peaks in the MLP.
        restores = plan.queries or plan.groups
        outputs = LayerPlan(queries=plan.queries, groups=plan.groups) if restores else None
        return cls(layer, plan.sizes, plan.window, outputs, plan.cross_attention, plan.mlp, given)

    def release(self) -> None:
        """Free the memory of ``given``, which ComfyUI's block holds until its end."""
        given, self.given = self.given, ()
        for x in given:
            x.data = x.new_empty(0)

    def take_sizes(self, keys: int) -> Tensor | None:
        """Take ``sizes`` away; None where another attention call asks, with other ``keys``."""
        if self.sizes is None or self.sizes.shape[1] != keys:
            return None
        sizes, self.sizes = self.sizes, None
        return sizes

    def take_window(self, keys: int) -> WindowPlan | None:
        """As ``take_sizes``, of ``window``."""
        if self.window is None or self.window.geometry.stream.length != keys:
            return None
        window, self.window = self.window, None
        return window


@dataclass
class UNetCall:
    """One call of a UNet.

    Args:
        model: what both architectures know of the call.
        unet: the module that is called; clones may have modules of their own.
        layers: those with self-attention in which a setting acts.
        frames: tokens of the model's temporal attention, None for still images.
        replaced: for each attention ("attn1", "attn2"), the blocks in which another node
            computes it.
        override: the attention that another node put in place of ComfyUI's.
        unreduced: see ``ModelCall.find_unreduced``.
        preferred: the attention that the checkpoint asks for, None where it asks for none.
        running: the block that runs, where it is reduced.
    """

    model: ModelCall
    unet: nn.Module
    layers: Mapping[LayerKey, SelfAttentionLayer]
    frames: int | None
    replaced: Mapping[str, frozenset[tuple[Any, ...]]]
    override: Override | None
    unreduced: set[Hashable]
    preferred: Attention | None = None
    running: RunningBlock | None = None

    def add_speed(self, layer: Layer) -> Layer:
        """The layer, which knows how fast it is where nothing is reduced."""
        function = self.preferred or comfy_attention.optimized_attention
        return Backend(function, self.override).add_speed(layer, {})

    def find_block(self, options: Mapping[str, Any]) -> RunningBlock | None:
        """What the block that runs was given, None where it is not reduced."""
        running = self.running
        return running if running and running.layer.key == find_key(options) else None

    def is_replaced(self, attention: str, layer: SelfAttentionLayer) -> bool:
        """True where another node computes this attention of the layer's block."""
        names = self.replaced[attention]
        return layer.key in names or (layer.block, layer.number) in names


def find_key(options: Mapping[str, Any]) -> LayerKey:
    """The key of the block that runs."""
    block, number = options.get("block", ("", 0))
    return block, number, options.get("block_index", 0)
