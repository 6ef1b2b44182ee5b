"""What changes noise levels, and how a step treats the latent."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from comfy_extras.nodes_differential_diffusion import DifferentialDiffusion
from comfy_extras.nodes_model_advanced import (
    ModelSamplingAuraFlow,
    ModelSamplingFlux,
    ModelSamplingSD3,
)
from comfy_extras.nodes_rope import ScaleROPE

from ...kinds import EVERY_KIND, TRANSFORMERS
from ...other import Other, run_node
from ...sampler_call import SamplerCall


def paint_inside(call: SamplerCall) -> SamplerCall:
    """A noise mask with a soft edge over a latent that is there."""
    latent = torch.randn(call.noise.shape, generator=torch.Generator().manual_seed(8))
    mask = torch.zeros(1, 1, *call.noise.shape[2:])
    mask[..., :10, :] = 1.0
    mask[..., 10:14, :] = 0.5
    return replace(call, steps=3, latent=latent, options={"noise_mask": mask})


OTHERS = (
    Other(
        "ModelSamplingFlux",
        TRANSFORMERS,
        lambda model: run_node(ModelSamplingFlux, model, 1.15, 0.5, 2048, 2048),
    ),
    Other("ModelSamplingSD3", TRANSFORMERS, lambda model: run_node(ModelSamplingSD3, model, 5.0)),
    Other(
        "ModelSamplingAuraFlow",
        TRANSFORMERS,
        lambda model: run_node(ModelSamplingAuraFlow, model, 1.73),
    ),
    Other(
        "ScaleROPE",
        TRANSFORMERS,
        lambda model: run_node(ScaleROPE, model, 2.0, 1.0, 2.0, 1.0, 1.0, 0.0),
    ),
    Other("Set Latent Noise Mask", EVERY_KIND, change=paint_inside),
    Other(
        "Differential Diffusion",
        TRANSFORMERS,
        partial(run_node, DifferentialDiffusion),
        change=paint_inside,
    ),
)
