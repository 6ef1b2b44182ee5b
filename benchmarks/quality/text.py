"""Captions to vectors: SD 1.5's tokenizer and a narrow, random text encoder of its class.

Random weights are enough: what the model needs is that different words get different vectors,
and that neighbouring words can be told from distant ones.
"""

from __future__ import annotations

from math import sqrt

import comfy.sd
import comfy.sd1_clip
import torch
from comfy.supported_models_base import ClipTarget
from torch import Tensor

WIDTH = 128
ENCODER = {
    "hidden_size": WIDTH,
    "intermediate_size": 4 * WIDTH,
    "projection_dim": WIDTH,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
}
SEED = 1


def encoder() -> comfy.sd.CLIP:
    """CLIP, as ComfyUI's loaders return it. (B, 77, 128) for a batch of prompts."""
    target = ClipTarget(comfy.sd1_clip.SD1Tokenizer, comfy.sd1_clip.SD1ClipModel)
    clip = comfy.sd.CLIP(target, model_options={"clip_l_model_config": ENCODER})
    generator = torch.Generator().manual_seed(SEED)
    for name, weight in clip.cond_stage_model.named_parameters():
        if weight.ndim == 2:
            value = torch.randn(weight.shape, generator=generator) * _gain(name, weight)
        else:
            value = torch.full(weight.shape, float(name.endswith("weight")))
        weight.data.copy_(value)
    return clip


def encode(clip: comfy.sd.CLIP, caption: str) -> Tensor:
    """The vectors of one caption, (77, 128)."""
    vectors: Tensor = clip.encode_from_tokens(clip.tokenize(caption))
    return vectors[0].float().cpu()


def _gain(name: str, weight: Tensor) -> float:
    # What a word is has to outweigh where it stands and what stands before it.
    if "token_embedding" in name:
        return 1.0
    if "position_embedding" in name:
        return 0.4
    branch_end = name.endswith(("out_proj.weight", "fc2.weight"))
    return (0.5 if branch_end else 1.0) / sqrt(weight.shape[1])
