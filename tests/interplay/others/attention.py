"""Nodes that change attention."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import torch
from comfy.ldm.modules.attention import attention_pytorch, optimized_attention
from comfy.model_patcher import ModelPatcher
from comfy_extras.nodes_attention_multiply import UNetSelfAttentionMultiply
from comfy_extras.nodes_hypernetwork import HypernetworkLoader
from comfy_extras.nodes_hypertile import HyperTile
from comfy_extras.nodes_tomesd import TomePatchModel
from support import other_attention
from support.unets import build_unet
from token_merge.nodes.hooks.attention import backend
from torch import Tensor

from ..files import save
from ..kinds import EVERY_KIND, UNETS, call_larger_unet, make_unet
from ..other import Limit, Other, run_node

SAGE = "Patch Sage Attention KJ"
SAGE_SIZES = (64, 128)
IN_PLACE = Limit(
    "works in part",
    "in local windows in place of another node",
    "a local window that the user sets is computed in place of the other's attention",
    modes=("local window",),
)
NO_WEIGHTS = Limit(
    "works in part",
    "proportional_attention is left out where another node or a launch option",
    "proportional_attention is left out, which the other's attention could not compute",
    modes=("merged keys",),
)
WITHOUT_WEIGHTS = 5.0
"""Merged keys do not weigh as much as their tokens there: the error is 0.032 instead of 0.008."""
CHANGED_TOKENS = (
    Limit(
        "works in part",
        "another node changed its tokens",
        "the layers whose tokens the other node changes are left alone",
        modes=("every option",),
    ),
    Limit(
        "left alone",
        "another node changed its tokens",
        "the other node changes the tokens of the same layers",
    ),
)
CROSS_ATTENTION = Limit(
    "works in part",
    "another node computes the block's cross-attention",
    "merge_cross_attention is left out, for the other node computes cross-attention",
    modes=("every option",),
)


def attend_as_sage(
    q: Tensor, k: Tensor, v: Tensor, heads: int, mask: Any = None, **options: Any
) -> Tensor:
    """Takes what SageAttention's kernels take, with an error near theirs."""
    channels = q.shape[-1] if options.get("skip_reshape") else q.shape[-1] // heads
    assert channels in SAGE_SIZES, f"it was given heads of {channels} channels"
    assert mask is None, "it was given a mask"
    step = 2.0 ** (k.abs().amax().log2().floor() - 7)
    return attention_pytorch(q, (k / step).round() * step, v, heads, mask, **options)


patch_sage = partial(other_attention.patch_sage, attend=attend_as_sage)


@contextmanager
def as_on_a_gpu() -> Iterator[None]:
    """SageAttention runs there alone, and a mask there is slow, which decides how keys weigh."""
    with patch.object(backend, "masks_are_free", lambda device: False):
        yield


@cache
def build_wide_sdxl() -> ModelPatcher:
    return make_unet("SDXL", model_channels=64, num_heads=1)


@cache
def find_hypernetwork() -> str:
    """For the widths of self-attention and cross-attention in both UNets."""
    generator = torch.Generator().manual_seed(3)
    layers = {}
    for width in (32, 64):
        layers[width] = [
            {
                "linear.0.weight": torch.randn(width, width, generator=generator) * width**-0.5,
                "linear.0.bias": torch.zeros(width),
            }
            for _ in range(2)
        ]
    return save("hypernetworks", "random", layers)


def list_blocks(model: ModelPatcher) -> list[tuple[str, int]]:
    """The UNet's blocks with attention."""
    unet = model.model.diffusion_model
    stages = [("input", unet.input_blocks), ("output", unet.output_blocks)]
    found = [
        (name, number)
        for name, blocks in stages
        for number, block in enumerate(blocks)
        if any("attn2" in part for part, _ in block.named_modules())
    ]
    return [*found, ("middle", 0)]


def attend_to_picture_too(model: ModelPatcher) -> ModelPatcher:
    """As IP-Adapter nodes do, in place of each cross-attention."""
    seen = torch.randn(1, 4, 32, generator=torch.Generator().manual_seed(4))

    def attend(q: Tensor, k: Tensor, v: Tensor, extra_options: dict[str, Any]) -> Tensor:
        heads, channels = extra_options["n_heads"], q.shape[-1]
        keys = seen.repeat(len(q), 1, channels // 32)
        return optimized_attention(q, k, v, heads) + optimized_attention(q, keys, keys, heads)

    clone = model.clone()
    for name, number in list_blocks(model):
        clone.set_model_attn2_replace(attend, name, number)
    return clone


def reduce_by_comfyui(model: ModelPatcher) -> ModelPatcher:
    return run_node(TomePatchModel, model, 0.3)


def prompt_with_picture(model: ModelPatcher) -> ModelPatcher:
    """The tokens of a picture stand behind those of the prompt."""
    seen = torch.randn(1, 4, 32, generator=torch.Generator().manual_seed(4))

    def extend(n: Tensor, context: Tensor, value: Tensor, extra_options: dict[str, Any]) -> Any:
        longer = torch.cat([context, seen.expand(len(n), -1, -1)], dim=1)
        return n, longer, longer

    clone = model.clone()
    clone.set_model_attn2_patch(extend)
    return clone


OTHERS = (
    Other(
        "an attention override that changes nothing",
        EVERY_KIND,
        other_attention.patch_unknown,
        changes_picture=False,
        limits=(IN_PLACE,),
    ),
    *(
        Other(
            SAGE,
            (kind,),
            patch_sage,
            build=build,
            situation=as_on_a_gpu,
            most_error=WITHOUT_WEIGHTS,
            limits=(NO_WEIGHTS,),
        )
        for kind, build in (
            ("SD 1.5", partial(build_unet, "SD15 wide")),
            ("SDXL", build_wide_sdxl),
        )
    ),
    Other(
        "IP-Adapter, which computes cross-attention",
        UNETS,
        attend_to_picture_too,
        limits=(CROSS_ATTENTION,),
    ),
    Other("IP-Adapter, which lengthens the prompt", UNETS, prompt_with_picture),
    Other(
        "HyperTile",
        UNETS,
        lambda model: run_node(HyperTile, model, 64, 2, 1, False),
        change=call_larger_unet,
        limits=CHANGED_TOKENS,
    ),
    Other("TomePatchModel", ("SD 1.5",), reduce_by_comfyui, limits=CHANGED_TOKENS),
    Other(
        "TomePatchModel",
        ("SDXL",),
        reduce_by_comfyui,
        changes_picture=False,
        note="It acts on the layers of full resolution alone, where SDXL has no attention",
    ),
    Other(
        "Load Hypernetwork",
        UNETS,
        lambda model: run_node(HypernetworkLoader, model, find_hypernetwork(), 0.5),
    ),
    Other(
        "UNetSelfAttentionMultiply",
        UNETS,
        lambda model: run_node(UNetSelfAttentionMultiply, model, 1.1, 0.9, 1.2, 0.8),
    ),
)
