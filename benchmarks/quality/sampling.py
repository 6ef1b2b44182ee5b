"""Pictures and clips of a trained model, through ComfyUI's own sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import comfy.samplers
import torch
from comfy.model_patcher import ModelPatcher
from torch import Generator, Tensor

from ..trained import autoencoder
from .regimes import Regime

STEP_NOISE = 2**31
"""It is added to a picture's seed where a sampler draws noise in its steps; the first noise of no
picture has such a seed. Generators of the CPU read 32 bits of a seed."""


@dataclass(frozen=True)
class Batch:
    """Pictures, or clips, that are computed together.

    prompts: (B, 77, C). nothing: (1, 77, C), the negative prompt. seeds: of the noise, one a
    picture, so that a picture's noise does not depend on what else is in its batch. shape: of one
    latent, its channels first: (C, H, W), or (C, F, H, W) of a clip. captions: for people. number:
    which of all batches this is.
    """

    prompts: Tensor
    nothing: Tensor
    seeds: tuple[int, ...]
    shape: tuple[int, ...]
    captions: tuple[str, ...] = ()
    number: int = 0

    def take_one(self) -> Batch:
        """The first picture alone."""
        return replace(self, prompts=self.prompts[:1], seeds=self.seeds[:1])

    def noise(self) -> Tensor:
        """(B, *shape)."""
        return _draw([Generator().manual_seed(seed) for seed in self.seeds], self.shape)

    def step_noise(self) -> Callable[[Tensor, Tensor], Tensor]:
        """What a sampler that adds noise calls in each step, with two noise levels.

        The same in every run, again whatever else is in the batch.
        """
        generators = [Generator().manual_seed(seed + STEP_NOISE) for seed in self.seeds]
        return lambda sigma, _: _draw(generators, self.shape).to(sigma.device)


def _draw(generators: list[Generator], shape: tuple[int, ...]) -> Tensor:
    return torch.stack([torch.randn(shape, generator=each) for each in generators])


def square(tokens: int, channels: int = autoencoder.CHANNELS) -> tuple[int, int, int]:
    """The latent's shape of a picture with so many tokens a side."""
    return (channels, tokens, tokens)


def noise_levels(model: ModelPatcher, regime: Regime) -> Tensor:
    """(steps + 1,), falling to 0."""
    sampling = model.get_model_object("model_sampling")
    levels: Tensor = comfy.samplers.calculate_sigmas(sampling, regime.scheduler, regime.steps)
    return levels


@torch.inference_mode()
def sample(model: ModelPatcher, batch: Batch, regime: Regime) -> Tensor:
    """(B, *shape), scaled as the model sees it. One row a picture, two where ``regime`` guides."""
    noise = batch.noise()
    options = {"noise_sampler": batch.step_noise()} if regime.draws_noise else {}
    latent: Tensor = comfy.samplers.sample(
        model,
        noise,
        [[batch.prompts, {}]],
        [[batch.nothing, {}]],
        regime.cfg,
        model.load_device,
        comfy.samplers.ksampler(regime.sampler, options),
        noise_levels(model, regime),
        model_options=model.model_options,
        latent_image=torch.zeros_like(noise),
        disable_pbar=True,
        seed=batch.seeds[0],
    )
    return model.model.process_latent_in(latent)


def pictures(model: ModelPatcher, latent: Tensor) -> Tensor:
    """(B, C, ..., H, W) as the model sees it -> (B, 3, ..., height, width) in [0, 1].

    ...: nothing for pictures, the frames of clips.
    """
    return autoencoder.decode(model.model.process_latent_out(latent)).cpu()
