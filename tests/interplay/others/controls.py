"""Models beside the model, and pictures beside the prompt."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch
from comfy.cldm.cldm import ControlNet as ControlModel
from comfy.controlnet import ControlNet
from comfy.gligen import GatedSelfAttentionDense, PositionNet
from comfy.model_patcher import ModelPatcher
from support.unets import build_unet
from torch import Tensor

from benchmarks.random_models import fill_weights
from nodes import (
    ControlNetApplyAdvanced,
    GLIGENLoader,
    GLIGENTextBoxApply,
    InpaintModelConditioning,
)

from ..files import save
from ..kinds import CONFIGS, UNETS, make_unet
from ..other import Other, run_node
from ..sampler_call import SamplerCall


@cache
def build_control_net(kind: str) -> ControlNet:
    """With random weights, those of its last layers too."""
    _, settings = CONFIGS[kind]
    model = ControlModel(**settings, hint_channels=3, dtype=torch.float32)
    fill_weights(model, torch.Generator().manual_seed(2), scale=0.5)
    return ControlNet(model, load_device=torch.device("cpu"))


def control(call: SamplerCall, kind: str) -> SamplerCall:
    height, width = (side * 8 for side in call.noise.shape[-2:])
    picture = torch.rand(1, height, width, 3, generator=torch.Generator().manual_seed(2))
    positive, negative = ControlNetApplyAdvanced().apply_controlnet(
        call.positive, call.negative, build_control_net(kind), picture, 1.0, 0.0, 1.0
    )
    return replace(call, positive=positive, negative=negative)


class ColourVAE:
    """Latents are the mean colours, and the mean of these."""

    def encode(self, pixels: Tensor) -> Tensor:
        colours = torch.nn.functional.avg_pool2d(pixels.movedim(-1, 1), 8)
        return torch.cat([colours, colours.mean(dim=1, keepdim=True)], dim=1)


@cache
def build_inpainting_model(kind: str) -> ModelPatcher:
    """Nine channels: the latent, the picture to be completed and its mask."""
    return make_unet(kind, in_channels=9)


def inpaint(call: SamplerCall) -> SamplerCall:
    height, width = (side * 8 for side in call.noise.shape[-2:])
    pixels = torch.rand(1, height, width, 3, generator=torch.Generator().manual_seed(2))
    mask = torch.zeros(1, height, width)
    mask[:, height // 4 :, : width // 2] = 1.0
    positive, negative, latent = InpaintModelConditioning().encode(
        call.positive, call.negative, pixels, ColourVAE(), mask, noise_mask=True
    )
    return replace(
        call,
        positive=positive,
        negative=negative,
        latent=latent["samples"],
        options={"noise_mask": latent["noise_mask"]},
    )


class FixedCLIP:
    """Says the same of every text."""

    def tokenize(self, text: str) -> str:
        return text

    def encode_from_tokens(self, tokens: str, return_pooled: Any) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(5)
        return torch.randn(1, 7, 32, generator=generator), torch.randn(1, 768, generator=generator)


@cache
def find_gligen() -> str:
    """With random weights, its gates open."""
    generator = torch.Generator().manual_seed(5)
    weights: dict[str, Tensor] = {}
    modules = build_unet("SD15").model.diffusion_model.named_modules()
    blocks = [(path, part.norm1.weight.numel()) for path, part in modules if hasattr(part, "attn1")]
    for path, width in blocks:
        fuser = GatedSelfAttentionDense(width, 768, 8, width // 8)
        fill_weights(fuser, generator, scale=0.5)
        weights |= {f"{path}.fuser.{name}": each for name, each in fuser.state_dict().items()}
    places = PositionNet(768, 768)
    fill_weights(places, generator)
    weights |= {f"position_net.{name}": each for name, each in places.state_dict().items()}
    return save("gligen", "random", weights)


def place_object(call: SamplerCall) -> SamplerCall:
    gligen = run_node(GLIGENLoader, find_gligen())
    box = (64, 48, 16, 32)
    positive = run_node(GLIGENTextBoxApply, call.positive, FixedCLIP(), gligen, "an object", *box)
    return replace(call, positive=positive)


OTHERS = (
    *(Other("ControlNet", (kind,), change=partial(control, kind=kind)) for kind in UNETS),
    *(
        Other(
            "an inpainting model (9 channels)",
            (kind,),
            change=inpaint,
            build=partial(build_inpainting_model, kind),
        )
        for kind in UNETS
    ),
    Other("InpaintModelConditioning", UNETS, change=inpaint),
    Other("GLIGEN", ("SD 1.5",), change=place_object),
)
