"""One sampling run of a small model, named by what varies between runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import comfy.sample
import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from .family import Family


@dataclass(frozen=True)
class Run:
    """Seeds and sizes of a run; two runs that differ in one field differ in that alone.

    size: of the latent, one number per axis; None: the usual. text: tokens of the prompt.
    uncond_text: of the negative prompt, which is sampled where cfg is not 1. masked:
    how many tokens at the end of each prompt its mask leaves out. batch: pictures.
    """

    size: tuple[int, ...] | None = None
    text: int = 7
    uncond_text: int = 7
    masked: int = 0
    batch: int = 1
    steps: int = 2
    cfg: float = 1.0
    latent_seed: int = 1
    prompt_seed: int = 2
    reference_seed: int = 3
    extras_seed: int = 4

    def latent(self, family: Family) -> Tensor:
        """The noise it starts from. (B, C, *size)"""
        generator = torch.Generator().manual_seed(self.latent_seed)
        size = self.size or family.latent_size()
        return torch.randn(self.batch, family.channels, *size, generator=generator)

    def prompt(self, family: Family, tokens: int, seed: int) -> list[Any]:
        """In ComfyUI's form: a list of one pair of embedding (1, tokens, width) and dictionary."""
        generator = torch.Generator().manual_seed(seed)
        embedding = torch.randn(1, tokens, family.prompt_width, generator=generator)
        size = self.size or family.latent_size()
        extras = family.extras(torch.Generator().manual_seed(self.extras_seed), size)
        if family.mask == "needed" or self.masked:
            extras["attention_mask"] = (torch.arange(tokens)[None] < tokens - self.masked).long()
        references = torch.Generator().manual_seed(self.reference_seed)
        return [[embedding, {**extras, **family.reference_conditioning(references)}]]

    def sample(self, model: ModelPatcher, family: Family, **options: Any) -> Tensor:
        """The latent that ComfyUI's own sampler ends with. (B, C, *size)"""
        noise = options.pop("noise", None)
        noise = self.latent(family) if noise is None else noise
        return comfy.sample.sample(
            model,
            noise,
            self.steps,
            self.cfg,
            options.pop("sampler", "euler"),
            "simple",
            self.prompt(family, self.text, self.prompt_seed),
            self.prompt(family, self.uncond_text, self.prompt_seed + 100),
            torch.zeros_like(noise),
            seed=0,
            disable_pbar=True,
            **options,
        )
