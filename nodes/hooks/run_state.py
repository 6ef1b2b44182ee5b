"""State of one sampling run and of one model call; created and dropped by their wrappers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ...tome_core.plan import MergePlan
from ...tome_core.settings import Settings
from ...tome_core.tile_plan import TilePlan
from .composition import Reduction, Role
from .stepping_aside import RunReport
from .unet_layers import LayerKey, SelfAttentionLayer


@dataclass(frozen=True)
class Run:
    """One pass of a sampler.

    sigmas: its noise levels, descending. plans: merge plans that outlive a model call, each with
    the age of the run in which it was made.
    """

    sigmas: tuple[float, ...]
    report: RunReport = field(default_factory=RunReport)
    plans: dict[Hashable, tuple[int, MergePlan | TilePlan]] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelCall:
    """One call of the diffusion model.

    active: the settings whose window holds this call's sigma. step: where in the run it is.
    """

    reduction: Reduction
    active: tuple[Settings, ...]
    step: int
    run: Run

    def roles_by_settings(self, downsample: int) -> dict[Settings, frozenset[Role]]:
        """Who reduces what in layers of a resolution; no role twice, see composition.py."""
        return {
            settings: roles
            for settings in self.active
            if (roles := self.reduction.roles(settings, downsample))
        }


@dataclass(frozen=True)
class UNetCall(ModelCall):
    """One call of a UNet.

    layers: its self-attention layers by key. frames: tokens of the model's temporal attention,
    None for still images. replaced: per attention ("attn1", "attn2"), the blocks whose attention
    another node computes. earlier: the attention that another node put in place of ComfyUI's.
    mlp_plans: handed from a block's self-attention to its MLP, which gets no options.
    key_sizes: under "next", the tokens that each key of the next attention call stands for.
    """

    layers: dict[LayerKey, SelfAttentionLayer]
    frames: int | None
    replaced: dict[str, frozenset[tuple[Any, ...]]]
    earlier: Callable[..., Tensor] | None
    mlp_plans: dict[LayerKey, MergePlan | TilePlan] = field(default_factory=dict)
    key_sizes: dict[str, Tensor] = field(default_factory=dict)

    def acting_layer(self, extra_options: dict[str, Any]) -> SelfAttentionLayer | None:
        """The layer of this block call, None where no active setting reduces it."""
        block = extra_options.get("block", ("", 0))
        layer = self.layers.get((block[0], block[1], extra_options.get("block_index", 0)))
        return layer if layer and self.roles_by_settings(layer.downsample) else None

    def is_replaced(self, attention: str, layer: SelfAttentionLayer) -> bool:
        """True where another node computes this attention of the layer's block."""
        names = self.replaced[attention]
        return layer.key in names or (layer.block, layer.number) in names


CURRENT_CALL: ContextVar[UNetCall | None] = ContextVar("token_merge_call", default=None)
"""For the MLP alone: ComfyUI hands it tokens and nothing else."""
