"""One sampling run, as ComfyUI's KSampler does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import comfy.sample
import comfy.utils
from comfy.model_patcher import ModelPatcher
from torch import Tensor

Latent = dict[str, Any]
"""A LATENT: "samples" is (B, C, H, W) or (B, C, F, H, W)."""

StepCallback = Callable[[int, Tensor, Tensor, int], None]
"""Gets (number of the step, prediction, latent of the step, steps of the run)."""

SIZE_HINTS = ("downscale_ratio_spacial", "downscale_ratio_temporal")
"""How an empty latent says for which VAE it was made. ComfyUI takes them by these names."""


@dataclass(frozen=True)
class Sampling:
    """The inputs of KSampler, except the model."""

    seed: int
    steps: int
    cfg: float
    sampler_name: str
    scheduler: str
    positive: list[Any]
    negative: list[Any]
    latent_image: Latent
    denoise: float

    def run(self, model: ModelPatcher, callback: StepCallback) -> Latent:
        """What KSampler returns for ``model``; the latent that comes in is not changed."""
        hints = {name: self.latent_image[name] for name in SIZE_HINTS if name in self.latent_image}
        start = comfy.sample.fix_empty_latent_channels(model, self.latent_image["samples"], **hints)
        noise = comfy.sample.prepare_noise(start, self.seed, self.latent_image.get("batch_index"))
        samples = comfy.sample.sample(
            model,
            noise,
            self.steps,
            self.cfg,
            self.sampler_name,
            self.scheduler,
            self.positive,
            self.negative,
            start,
            denoise=self.denoise,
            noise_mask=self.latent_image.get("noise_mask"),
            callback=callback,
            disable_pbar=not comfy.utils.PROGRESS_BAR_ENABLED,
            seed=self.seed,
        )
        kept = {name: value for name, value in self.latent_image.items() if name not in SIZE_HINTS}
        return {**kept, "samples": samples}
