"""A narrow text encoder with random weights. Apart from the models: it needs more of ComfyUI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import comfy.sd
import comfy.sd1_clip
import torch
from comfy.supported_models_base import ClipTarget

from .random_models import Fill


def build_text_encoder(settings: Mapping[str, Any], fill: Fill, seed: int) -> comfy.sd.CLIP:
    """CLIP: SD 1.5's tokenizer and a text encoder of its class, as narrow as ``settings`` say."""
    target = ClipTarget(comfy.sd1_clip.SD1Tokenizer, comfy.sd1_clip.SD1ClipModel)
    encoder = comfy.sd.CLIP(target, model_options={"clip_l_model_config": settings})
    fill(encoder.cond_stage_model, torch.Generator().manual_seed(seed))
    return encoder
