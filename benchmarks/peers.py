"""The peers: ComfyUI's own nodes, tomesd's matching and ToDo's resampling, each as published."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from comfy.ldm.modules.attention import BasicTransformerBlock
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from comfy_extras.nodes_easycache import EasyCacheNode
from comfy_extras.nodes_hypertile import HyperTile
from comfy_extras.nodes_tomesd import TomePatchModel
from tomesd.merge import bipartite_soft_matching_random2d
from torch import Tensor

from .settings import Setting, is_finest

UNMERGE = "benchmark_tomesd_unmerge"


def comfyui_tome(model: ModelPatcher, ratio: float) -> ModelPatcher:
    """ComfyUI's TomePatchModel: merges queries alone, at full latent resolution alone."""
    return TomePatchModel.execute(model, ratio)[0]


def hypertile(model: ModelPatcher, finest: int) -> ModelPatcher:
    """ComfyUI's HyperTile, down to the finest layers; otherwise with its defaults.

    It lays queries in tiles, and leaves keys and values in raster order. ComfyUI's attention deals
    these out among the tiles, so that each tile reads a strip of the picture, and not itself as in
    HyperTile's own code.
    """
    return HyperTile.execute(
        model, tile_size=256, swap_size=2, max_depth=finest - 1, scale_depth=False
    )[0]


def tomesd(model: ModelPatcher, setting: Setting, finest: int, seed: int = 0) -> ModelPatcher:
    """The matching, merging and unmerging of tomesd 0.1.3, once per block as its own patch does.

    It matches what a block is given, before the norm; ComfyUI's patches see what comes after it.
    """
    generator = torch.Generator(model.load_device).manual_seed(seed)
    given: list[Tensor] = []

    def note_inputs(executor: WrapperExecutor, *args: Any, **kwargs: Any) -> Tensor:
        hooks = [
            module.norm1.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
            for module in executor.class_obj.modules()
            if isinstance(module, BasicTransformerBlock)
        ]
        try:
            out: Tensor = executor(*args, **kwargs)
        finally:
            for hook in hooks:
                hook.remove()
        return out

    def merge_tokens(
        n: Tensor, context: Tensor, value: Tensor, extra_options: dict[str, Any]
    ) -> tuple[Tensor, Tensor, Tensor]:
        metric = given.pop()
        if not is_finest(extra_options, finest):
            return n, context, value
        height, width = extra_options["activations_shape"][-2:]
        merge, unmerge = bipartite_soft_matching_random2d(
            metric, width, height, 2, 2, int(n.shape[1] * setting.ratio), generator=generator
        )
        merged = merge(n)
        if "queries" not in setting.target:
            return n, merged, merged
        extra_options[UNMERGE] = unmerge
        return (merged, merged, merged) if "keys" in setting.target else (merged, context, value)

    def unmerge_tokens(n: Tensor, extra_options: dict[str, Any]) -> Tensor:
        unmerge = extra_options.pop(UNMERGE, None)
        return unmerge(n) if unmerge else n

    clone = model.clone()
    clone.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "benchmark_tomesd", note_inputs)
    clone.set_model_attn1_patch(merge_tokens)
    clone.set_model_attn1_output_patch(unmerge_tokens)
    return clone


def todo(model: ModelPatcher, setting: Setting, finest: int) -> ModelPatcher:
    """ToDo (arXiv 2402.13573) as released: interpolated before the key and the value projection.

    Its code hooks both projections, so the same tokens are resampled twice.
    """

    def resample(x: Tensor, height: int, width: int) -> Tensor:
        image = x.reshape(x.shape[0], height, width, -1).permute(0, 3, 1, 2)
        size = (height // setting.factor, width // setting.factor)
        image = F.interpolate(image, size=size, mode="nearest-exact")
        return image.permute(0, 2, 3, 1).reshape(x.shape[0], size[0] * size[1], -1)

    def downsample(
        n: Tensor, context: Tensor, value: Tensor, extra_options: dict[str, Any]
    ) -> tuple[Tensor, Tensor, Tensor]:
        if not is_finest(extra_options, finest):
            return n, context, value
        sides = extra_options["activations_shape"][-2:]
        return n, resample(context, *sides), resample(value, *sides)

    clone = model.clone()
    clone.set_model_attn1_patch(downsample)
    return clone


def easy_cache(model: ModelPatcher, threshold: float) -> ModelPatcher:
    """ComfyUI's EasyCache with its defaults: leaves out calls whose output would change little.

    In place of a call it adds what the last one changed to the tensor that it is given. In single
    precision a flow model gives it the tensor that the noise-free picture is computed from, which
    spoils that picture, so it is given a copy here. Elsewhere, in bfloat16 too, it gets a copy from
    ComfyUI anyway, and this changes nothing.
    """

    def copy_latent(executor: WrapperExecutor, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return executor(x.clone(), *args, **kwargs)

    clone = model.clone()
    clone.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "benchmark_copy", copy_latent)
    return EasyCacheNode.execute(
        clone, reuse_threshold=threshold, start_percent=0.15, end_percent=0.95, verbose=False
    )[0]
