"""Training from examples: the network learns to tell a picture from noise, at every noise level."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import Batches
from .target import answer, compute_target


@dataclass(frozen=True)
class Denoising:
    """An ``Objective``. dtype: what the network computes in."""

    batches: Batches
    dtype: torch.dtype = torch.bfloat16

    def compute_loss(self, network: nn.Module, step: int, device: torch.device) -> Tensor:
        """Mean squared error of the predicted velocity on the batch of this step."""
        batch = self.batches.draw(step, device)
        sampling = self.batches.model.get_model_object("model_sampling")
        last = len(sampling.sigmas)
        shifted = self.batches.recipe.shift_levels(batch.spread / len(batch.spread))
        levels = (shifted * last).long().clamp(max=last - 1).to(device)
        sigmas = sampling.sigmas.to(batch.latent)[levels]  # (B,)
        noised = sampling.noise_scaling(sigmas, batch.noise, batch.latent)
        output = answer(network, sampling, sigmas, noised, batch.context, self.dtype)
        return F.mse_loss(output, compute_target(sampling, sigmas, noised, batch.latent))
