"""Captions to vectors: SD 1.5's tokenizer and a narrow, random text encoder of its class.

Random weights are enough: what the model needs is that different words get different vectors,
and that neighbouring words can be told from distant ones.
"""

from __future__ import annotations

from math import sqrt

import comfy.sd
import torch
from torch import Generator, Tensor, nn

from ..random_text_encoder import build_text_encoder

WIDTH = 128
ENCODER = {
    "hidden_size": WIDTH,
    "intermediate_size": 4 * WIDTH,
    "projection_dim": WIDTH,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
}
SEED = 1


def build_encoder() -> comfy.sd.CLIP:
    """CLIP, as ComfyUI's loaders return it. (B, 77, 128) for a batch of prompts."""
    return build_text_encoder(ENCODER, _fill, SEED)


def encode(clip: comfy.sd.CLIP, caption: str) -> Tensor:
    """The vectors of one caption, (77, 128)."""
    vectors: Tensor = clip.encode_from_tokens(clip.tokenize(caption))
    return vectors[0].float().cpu()


def _fill(module: nn.Module, generator: Generator) -> None:
    for name, weight in module.named_parameters():
        if weight.ndim == 2:
            value = torch.randn(weight.shape, generator=generator) * _find_gain(name, weight)
        else:
            value = torch.full(weight.shape, float(name.endswith("weight")))
        weight.data.copy_(value)


def _find_gain(name: str, weight: Tensor) -> float:
    # What a word is has to outweigh where it stands and what stands before it.
    if "token_embedding" in name:
        return 1.0
    if "position_embedding" in name:
        return 0.4
    branch_end = name.endswith(("out_proj.weight", "fc2.weight"))
    return (0.5 if branch_end else 1.0) / sqrt(weight.shape[1])
