"""Pictures and predictions of the trained model, through ComfyUI's own sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import comfy.samplers
import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from ..trained import codec

STEPS = 20


@dataclass(frozen=True)
class Batch:
    """Pictures that are computed together.

    prompts: (B, 77, C). seeds: of the noise, one a picture, so that a picture's noise does not
    depend on what else is in its batch. tokens: a side.
    """

    prompts: Tensor
    seeds: tuple[int, ...]
    tokens: int

    def noise(self) -> Tensor:
        """(B, 12, tokens, tokens)."""
        return torch.stack([self._draw_noise(seed) for seed in self.seeds])

    def _draw_noise(self, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn((codec.CHANNELS, self.tokens, self.tokens), generator=generator)


@dataclass(frozen=True)
class Trajectory:
    """One sampling run of a batch.

    states, predictions: (steps, B, 12, H, W), what the model was given in each step and the
    noise-free picture that it made of it. latent: the result, (B, 12, H, W), scaled as the model
    sees it.
    """

    sigmas: Tensor
    states: Tensor
    predictions: Tensor
    latent: Tensor

    def every(self, stride: int) -> Trajectory:
        """The same run, with only some of its steps known."""
        levels = [*self.sigmas[:-1:stride], self.sigmas[-1]]
        kept = self.states[::stride], self.predictions[::stride]
        return Trajectory(torch.stack(levels), *kept, self.latent)


def noise_levels(model: ModelPatcher, steps: int = STEPS) -> Tensor:
    """(steps + 1,), falling to 0: ComfyUI's "normal" scheduler."""
    sampling = model.get_model_object("model_sampling")
    levels: Tensor = comfy.samplers.calculate_sigmas(sampling, "normal", steps)
    return levels


def sample(
    model: ModelPatcher, batch: Batch, steps: int = STEPS, sampler: str = "euler"
) -> Trajectory:
    """Unguided: one row a picture. sampler: by ComfyUI's name for it."""
    states: list[Tensor] = []
    predictions: list[Tensor] = []

    def record(step: int, denoised: Tensor, state: Tensor, total: int) -> None:
        states.append(state.clone())
        predictions.append(denoised.clone())

    sigmas = noise_levels(model, steps)
    latent = _run(model, batch, comfy.samplers.sampler_object(sampler), sigmas, record)
    return Trajectory(sigmas, torch.stack(states), torch.stack(predictions), latent)


def predictions_on(model: ModelPatcher, batch: Batch, plain: Trajectory) -> Tensor:
    """What ``model`` makes of the states that another run went through, (steps, B, 12, H, W).

    So an error of one step does not reach the next one.
    """
    found: list[Tensor] = []

    def look(
        denoise: Callable[..., Tensor],
        x: Tensor,
        sigmas: Tensor,
        extra_args: dict[str, Any] | None = None,
        **_: Any,
    ) -> Tensor:
        ones = x.new_ones(len(x))
        for state, sigma in zip(plain.states, sigmas, strict=False):
            found.append(denoise(state.to(x), sigma * ones, **(extra_args or {})))
        return x

    _run(model, batch, comfy.samplers.KSAMPLER(look), plain.sigmas)
    return torch.stack(found)


def pictures(model: ModelPatcher, latent: Tensor) -> Tensor:
    """(B, 12, H, W) as the model sees it -> (B, 3, 2H, 2W) in [0, 1]."""
    bands = model.model.process_latent_out(latent)
    return (codec.join_bands(bands) / 2 + 0.5).clamp(0, 1)


@torch.inference_mode()
def _run(
    model: ModelPatcher,
    batch: Batch,
    sampler: Any,
    sigmas: Tensor,
    callback: Callable[[int, Tensor, Tensor, int], None] | None = None,
) -> Tensor:
    noise = batch.noise()
    prompts = [[batch.prompts, {}]]
    latent: Tensor = comfy.samplers.sample(
        model,
        noise,
        prompts,
        prompts,
        1.0,
        model.load_device,
        sampler,
        sigmas,
        model_options=model.model_options,
        latent_image=torch.zeros_like(noise),
        callback=callback,
        disable_pbar=True,
        seed=batch.seeds[0],
    )
    return model.model.process_latent_in(latent)
