"""What a sampler node of ComfyUI gets beside the MODEL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import comfy.sample
import comfy.samplers
import torch
from comfy.model_management import current_loaded_models
from comfy.model_patcher import ModelPatcher
from torch import Tensor

Conditioning = list[Any]
"""It has pairs of an embedding (P, tokens, width) and a dictionary, as ComfyUI hands them on."""


@dataclass(frozen=True, eq=False)
class SamplerCall:
    """One run of a sampler.

    Args:
        noise: (B, C, *size).
        latent: (B, C, *size), to which the noise is added.
        make_guider: from the MODEL and this, where a node brings a guider of its own.
        options: further arguments of ``comfy.sample.sample``, such as ``noise_mask``.
    """

    noise: Tensor
    latent: Tensor
    positive: Conditioning
    negative: Conditioning
    scheduler: str
    steps: int = 2
    cfg: float = 4.0
    sampler: str = "euler"
    make_guider: Callable[[ModelPatcher, SamplerCall], comfy.samplers.CFGGuider] | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def sample(self, model: ModelPatcher) -> Tensor:
        """The latent that the sampler ends with. (B, C, *size)"""
        torch.manual_seed(0)  # some nodes draw from the global random state
        latent = self._sample(model)
        # Else the next run collects garbage for half a second, on the trail of a dead clone.
        current_loaded_models.clear()
        return latent

    def _sample(self, model: ModelPatcher) -> Tensor:
        if self.make_guider:
            sampling = model.get_model_object("model_sampling")
            sigmas = comfy.samplers.calculate_sigmas(sampling, self.scheduler, self.steps)
            sampler = comfy.samplers.sampler_object(self.sampler)
            guider = self.make_guider(model, self)
            return guider.sample(
                self.noise, self.latent, sampler, sigmas, seed=0, disable_pbar=True
            )
        return comfy.sample.sample(
            model,
            self.noise,
            self.steps,
            self.cfg,
            self.sampler,
            self.scheduler,
            self.positive,
            self.negative,
            self.latent,
            seed=0,
            disable_pbar=True,
            **self.options,
        )
