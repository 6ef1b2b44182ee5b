"""Families that draw pictures."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Generator

from ..comfyui_version import known
from . import image_settings as small
from .hidream_o1 import HiDreamO1
from .small_model import Conditioning, References, SmallModel


def pooled(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """What CLIP says of the whole prompt; the same for all, as it sways every token."""
    return {"pooled_output": torch.linspace(-1, 1, 16)[None]}


def llama(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """HiDream's third text encoder: two of its layers, five tokens."""
    layers = torch.randn(1, 2, 5, 20, generator=generator)
    return {**pooled(generator, size), "conditioning_llama3": layers}


def seen_reference(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """What SigLIP sees in the first reference: seven by ten tokens."""
    seen = torch.randn(1, 70, 16, generator=generator)
    vision = SimpleNamespace(image_sizes=[(3, 112, 160)], last_hidden_state=seen)
    return {"clip_vision_outputs": [vision]}


def byte_text(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """The text to be drawn, as bytes."""
    return {"conditioning_byt5small": torch.randn(1, 4, 1472, generator=generator)}


def latent_to_decode(generator: Generator, size: tuple[int, ...]) -> Conditioning:
    """The latent that PiD makes a picture of, and how noisy it is."""
    sides = (-(-side // 8) for side in size)
    return {
        "lq_latent": torch.randn(1, 4, *sides, generator=generator),
        "degrade_sigma": torch.zeros(1),
    }


TWO, ONE, FLAT = (2, 2), (1, 1), (1, 2, 2)
KONTEXT = References()
TIMESTEP_ZERO = References(options={"reference_latents_method": "index_timestep_zero"})

IMAGES = (
    SmallModel("Flux", known.Flux, small.FLUX, 16, TWO, 24, pooled),
    SmallModel("Flux Kontext", known.Flux, small.FLUX, 16, TWO, 24, pooled, KONTEXT),
    SmallModel("Flux 2", known.Flux2, small.FLUX2, 128, ONE, 24, pooled),
    SmallModel("Flux 2 with references", known.Flux2, small.FLUX2, 128, ONE, 24, pooled, KONTEXT),
    SmallModel(
        "Flux 2 with references at timestep zero",
        known.Flux2,
        {**small.FLUX2, "guidance_embed": False},
        128,
        ONE,
        24,
        pooled,
        TIMESTEP_ZERO,
    ),
    SmallModel("Chroma", known.Chroma, small.CHROMA, 16, TWO, 24, pooled),
    SmallModel("Chroma Radiance", known.ChromaRadiance, small.RADIANCE, 3, (4, 4), 24),
    SmallModel("SD3", known.SD3, small.SD3, 16, TWO, 24, pooled),
    SmallModel(
        "SD3.5 medium",
        known.SD3,
        {**small.SD3, "x_block_self_attn_layers": [0, 1]},
        16,
        TWO,
        24,
        pooled,
    ),
    SmallModel("Qwen-Image", known.QwenImage, small.QWEN, 16, FLAT, 24, mask="possible"),
    SmallModel(
        "Qwen-Image Edit",
        known.QwenImage,
        small.QWEN,
        16,
        FLAT,
        24,
        references=KONTEXT,
        mask="possible",
    ),
    SmallModel(
        "Qwen-Image Layered",
        known.QwenImage,
        {**small.QWEN, "use_additional_t_cond": True, "default_ref_method": "negative_index"},
        16,
        FLAT,
        24,
        references=KONTEXT,
        grid=(3, 6, 8),
    ),
    SmallModel("Lumina 2", known.Lumina2, small.LUMINA, 16, TWO, 24),
    SmallModel("Z-Image", known.ZImage, small.Z_IMAGE, 16, TWO, 24),
    SmallModel(
        "Z-Image with references", known.ZImage, small.Z_IMAGE, 16, TWO, 24, references=KONTEXT
    ),
    SmallModel(
        "Z-Image Omni",
        known.ZImage,
        {**small.Z_IMAGE, "siglip_feat_dim": 16},
        16,
        TWO,
        24,
        seen_reference,
        KONTEXT,
    ),
    SmallModel(
        "Z-Image in pixel space", known.ZImagePixelSpace, small.Z_IMAGE_PIXEL, 3, (4, 4), 24
    ),
    SmallModel(
        "Z-Image in pixel space with references",
        known.ZImagePixelSpace,
        small.Z_IMAGE_PIXEL,
        3,
        (4, 4),
        24,
        references=KONTEXT,
    ),
    SmallModel("HiDream-I1", known.HiDream, small.HIDREAM, 16, TWO, 24, llama),
    SmallModel(
        "HiDream-E1",
        known.HiDream,
        small.HIDREAM,
        16,
        TWO,
        24,
        llama,
        References(grids=(), key="concat_latent_image", listed=False),
    ),
    SmallModel("HiDream-O1", HiDreamO1, small.HIDREAM_O1, 3, (32, 32), 24, pads=False),
    SmallModel(
        "HiDream-O1 with a reference",
        HiDreamO1,
        small.HIDREAM_O1,
        3,
        (32, 32),
        24,
        references=References(grids=((4, 16),)),
        pads=False,
    ),
    SmallModel("OmniGen2", known.Omnigen2, small.OMNIGEN2, 16, TWO, 24, mask="needed"),
    SmallModel(
        "OmniGen2 with references",
        known.Omnigen2,
        small.OMNIGEN2,
        16,
        TWO,
        24,
        references=KONTEXT,
        mask="needed",
    ),
    SmallModel("Boogu", known.Boogu, small.BOOGU, 16, TWO, 24, mask="needed"),
    SmallModel(
        "Boogu with references",
        known.Boogu,
        small.BOOGU,
        16,
        TWO,
        24,
        references=KONTEXT,
        mask="needed",
    ),
    SmallModel("AuraFlow", known.AuraFlow, small.AURA, 4, TWO, 24),
    SmallModel("Krea 2", known.Krea2, small.KREA2, 16, FLAT, 32),
    SmallModel(
        "Krea 2 with references",
        known.Krea2,
        {**small.KREA2, "default_ref_method": "index"},
        16,
        FLAT,
        32,
        references=KONTEXT,
    ),
    SmallModel("Lens", known.Lens, small.LENS, 128, ONE, 24, mask="possible"),
    SmallModel("MageFlow", known.MageFlow, small.MAGE_FLOW, 128, ONE, 24, mask="possible"),
    SmallModel(
        "MageFlow with references",
        known.MageFlow,
        small.MAGE_FLOW,
        128,
        ONE,
        24,
        references=KONTEXT,
    ),
    SmallModel("JoyImage", known.JoyImage, small.JOY_IMAGE, 16, FLAT, 24),
    SmallModel(
        "JoyImage with references",
        known.JoyImage,
        small.JOY_IMAGE,
        16,
        FLAT,
        24,
        references=KONTEXT,
    ),
    SmallModel("Stable Cascade C", known.Stable_Cascade_C, small.CASCADE_C, 16, ONE, 24, pooled),
    SmallModel("Ideogram 4", known.Ideogram4, small.IDEOGRAM4, 128, ONE, 24, mask="possible"),
    SmallModel("PixelDiT", known.PixelDiTT2I, small.PIXEL_DIT, 3, (4, 4), 24),
    SmallModel("PiD", known.PiD, small.PID, 3, (4, 4), 24, latent_to_decode),
    SmallModel(
        "HunyuanImage 2.1", known.HunyuanImage21, small.HUNYUAN_IMAGE, 64, ONE, 24, mask="possible"
    ),
    SmallModel(
        "HunyuanImage 2.1 with letters",
        known.HunyuanImage21,
        {**small.HUNYUAN_IMAGE, "byt5": True},
        64,
        ONE,
        24,
        byte_text,
    ),
)
