"""Wrappers around a model and its parts, as tiling nodes add them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from torch import Tensor

from ...kinds import EVERY_KIND, TRANSFORMERS
from ...other import Limit, Other
from ..wrappers import tile_by_function, tile_by_wrapper


def wrap(kind: str, wrapper: Callable[..., Any]) -> Callable[[ModelPatcher], ModelPatcher]:
    def patch(model: ModelPatcher) -> ModelPatcher:
        clone = model.clone()
        clone.add_wrapper_with_key(kind, "another node", wrapper)
        return clone

    return patch


def lower(executor: WrapperExecutor, *args: Any, **kwargs: Any) -> Tensor:
    return 0.9 * executor(*args, **kwargs)


def lower_each(executor: WrapperExecutor, *args: Any, **kwargs: Any) -> list[Tensor]:
    return [0.9 * each for each in executor(*args, **kwargs)]


def add_behind_blocks(model: ModelPatcher) -> ModelPatcher:
    """As a Uni3C ControlNet, which adds to each token of the video behind each block."""

    def add(block: dict[str, Any]) -> dict[str, Any]:
        x, first = block["img"], block["img_offset"]
        added = torch.linspace(-1, 1, x.shape[1] - first)[:, None]
        return {"img": torch.cat([x[:, :first], x[:, first:] + added], dim=1)}

    clone = model.clone()
    clone.set_model_double_block_patch(add)
    return clone


def see_attention(model: ModelPatcher) -> ModelPatcher:
    """As InfiniteTalk, which compares queries and keys where the reference is."""

    def see(attention: dict[str, Any]) -> Tensor:
        out, q, k = (attention[name].flatten(2) for name in ("x", "q", "k"))
        return out * (1 + 0.1 * (q * k).mean(dim=-1, keepdim=True).tanh())

    clone = model.clone()
    clone.set_model_attn1_patch(see)
    return clone


def not_fitting(**fields: Any) -> Limit:
    return Limit(
        "left alone",
        "tokens of the picture",
        "the tiles are cut between our node and the attention, where nothing tells us their size",
        **fields,
    )


OTHERS = (
    Other("a patch behind each block (as Uni3C's)", ("Wan",), add_behind_blocks),
    Other("a patch that sees queries and keys (as InfiniteTalk's)", ("Wan",), see_attention),
    Other("tiles, by a model function wrapper", TRANSFORMERS, tile_by_function),
    Other(
        "tiles, by a wrapper around the model's call",
        TRANSFORMERS,
        tile_by_wrapper(WrappersMP.APPLY_MODEL),
        same_in_both_orders=False,
        limits=(not_fitting(orders=("before",)),),
    ),
    Other(
        "tiles, by a wrapper around the diffusion model",
        TRANSFORMERS,
        tile_by_wrapper(WrappersMP.DIFFUSION_MODEL),
        limits=(not_fitting(),),
    ),
    *(
        Other(f"a wrapper of {kind.upper()}", EVERY_KIND, wrap(kind, wrapper))
        for kind, wrapper in (
            (WrappersMP.DIFFUSION_MODEL, lower),
            (WrappersMP.APPLY_MODEL, lower),
            (WrappersMP.CALC_COND_BATCH, lower_each),
            (WrappersMP.PREDICT_NOISE, lower),
        )
    ),
)
