"""Nodes that change the steps of a sampler."""

from __future__ import annotations

from dataclasses import replace

import torch
from comfy_extras.nodes_context_windows import ContextWindowsManualNode
from comfy_extras.nodes_differential_diffusion import DifferentialDiffusion
from comfy_extras.nodes_easycache import EasyCacheNode, LazyCacheNode
from comfy_extras.nodes_model_advanced import ModelSamplingContinuousEDM, ModelSamplingDiscrete

from ..kinds import UNETS
from ..other import Other, run_node
from ..sampler_call import SamplerCall

V_PREDICTION = 6.0
"""The output of the model weighs more in the picture than where it predicts noise, and so does our
error in it."""
CACHE = (1.0, 0.1, 0.95, False)


def take_more_steps(call: SamplerCall) -> SamplerCall:
    return replace(call, steps=6)


def paint_several(call: SamplerCall) -> SamplerCall:
    """Three different pictures."""
    generator = torch.Generator().manual_seed(6)
    noise = torch.cat([call.noise, torch.randn(2, *call.noise.shape[1:], generator=generator)])
    return replace(call, noise=noise, latent=torch.zeros_like(noise))


def repaint_gradually(call: SamplerCall) -> SamplerCall:
    """Each column of the mask starts at another step."""
    height, width = call.noise.shape[-2:]
    mask = torch.linspace(0, 1, width).expand(1, 1, height, width)
    latent = torch.randn(call.noise.shape, generator=torch.Generator().manual_seed(6))
    return replace(call, latent=latent, options={"noise_mask": mask}, steps=3)


OTHERS = (
    Other(
        "ModelSamplingDiscrete",
        UNETS,
        lambda model: run_node(ModelSamplingDiscrete, model, "v_prediction", True),
        most_error=V_PREDICTION,
    ),
    Other(
        "ModelSamplingContinuousEDM",
        UNETS,
        lambda model: run_node(ModelSamplingContinuousEDM, model, "v_prediction", 120.0, 0.002),
        most_error=V_PREDICTION,
    ),
    Other(
        "Differential Diffusion",
        UNETS,
        lambda model: run_node(DifferentialDiffusion, model, 1.0),
        change=repaint_gradually,
    ),
    *(
        Other(
            name,
            UNETS,
            lambda model, node=node: run_node(node, model, *CACHE),
            change=take_more_steps,
            skips_calls=True,
        )
        for name, node in (("EasyCache", EasyCacheNode), ("LazyCache", LazyCacheNode))
    ),
    Other(
        "Context Windows (Manual), over a batch",
        UNETS,
        lambda model: run_node(
            ContextWindowsManualNode,
            model,
            context_length=2,
            context_overlap=1,
            context_schedule="standard_static",
            context_stride=1,
            closed_loop=False,
            fuse_method="pyramid",
            dim=0,
            freenoise=True,
        ),
        change=paint_several,
    ),
)
