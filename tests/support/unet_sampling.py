"""Pictures of the narrow UNets, by ComfyUI's own sampler."""

from __future__ import annotations

from typing import Any

import comfy.sample
import torch
from comfy.model_management import current_loaded_models
from comfy.model_patcher import ModelPatcher


def sample(
    model: ModelPatcher,
    *,
    size: tuple[int, int] = (16, 16),
    batch: int = 1,
    steps: int = 2,
    cfg: float = 4.0,
    latent: torch.Tensor | None = None,
    prompt_tokens: int = 7,
    scheduler: str = "normal",
    **options: Any,
) -> torch.Tensor:
    """Latents (batch, 4, *size) by ComfyUI's own sampler from a fixed seed and prompt.

    latent: what an earlier pass left, to go on from without new noise.
    """
    forget_dead_models()
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(batch, 4, *size, generator=generator)
    return comfy.sample.sample(
        model,
        noise if latent is None else torch.zeros_like(noise),
        steps,
        cfg,
        options.pop("sampler", "euler"),
        scheduler,
        *draw_prompts(generator, prompt_tokens),
        torch.zeros_like(noise) if latent is None else latent,
        seed=0,
        disable_pbar=True,
        **options,
    )


def draw_prompts(generator: torch.Generator, tokens: int = 7) -> tuple[Any, Any]:
    """The prompt and the negative prompt for a narrow UNet, in ComfyUI's form."""
    pooled = torch.randn(1, 1280, generator=generator)
    prompt, negative = (
        [[torch.randn(1, tokens, 32, generator=generator), {"pooled_output": pooled}]]
        for _ in range(2)
    )
    return prompt, negative


def forget_dead_models() -> None:
    """Else ComfyUI collects garbage for half a second, on the trail of a dead clone."""
    current_loaded_models[:] = [each for each in current_loaded_models if each.model is not None]
