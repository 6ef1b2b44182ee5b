"""One sampling run of a small model, named by what varies between runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import comfy.sample
import torch
from comfy.model_management import current_loaded_models
from comfy.model_patcher import ModelPatcher
from comfy.nested_tensor import NestedTensor
from torch import Tensor

from .small_model import SmallModel


@dataclass(frozen=True)
class SampleRequest:
    """Seeds and sizes of a run; two runs that differ in one field differ in that alone.

    size: of the latent, one number per axis; None: the usual. text: tokens of the prompt.
    uncond_text: of the negative prompt, which is sampled where cfg is not 1. batch: pictures; the
    second one has the next latent seed. masked: how many tokens at the end of the prompt its mask
    leaves out; two numbers for two pictures, of which the second has the next prompt seed.
    behind_mask: is added to the tokens that the mask leaves out.
    """

    size: tuple[int, ...] | None = None
    text: int = 7
    uncond_text: int = 7
    masked: tuple[int, ...] = (0,)
    behind_mask: float = 0.0
    batch: int = 1
    steps: int = 2
    cfg: float = 1.0
    latent_seed: int = 1
    prompt_seed: int = 2
    reference_seed: int = 3
    extras_seed: int = 4

    @property
    def uncond_seed(self) -> int:
        """The negative prompt's ``prompt_seed``."""
        return self.prompt_seed + 100

    @classmethod
    def with_tokens(
        cls, family: SmallModel, height: int, width: int, **fields: Any
    ) -> SampleRequest:
        """On a picture of this many tokens, and as many frames as the family's usual run."""
        return cls(size=family.latent_size(*family.grid[:-2], height, width), **fields)

    def token_grid(self, family: SmallModel) -> tuple[int, ...]:
        """Tokens per axis of the latent, cells that do not fill a patch included."""
        return _grid(self.size or family.latent_size(), family)

    def reference_tokens(self, family: SmallModel) -> int:
        """Of all references together."""
        sizes = family.reference_sizes(self.size or family.latent_size())
        return sum(prod(_grid(size, family)) for size in sizes)

    def latent(self, family: SmallModel) -> Tensor:
        """The noise it starts from. (B, C, *size), longer by references that are part of it."""
        size = self.size or family.latent_size()
        rows = range(self.latent_seed, self.latent_seed + self.batch)
        picture = torch.cat([_random(row, 1, family.channels, *size) for row in rows])
        if not (family.references and family.references.within):
            return picture
        (frames,) = family.reference_sizes(size)
        guide = _random(self.reference_seed, 1, family.channels, *frames)
        return torch.cat([picture, guide.expand(self.batch, -1, -1, -1, -1)], dim=2)

    def sound(self, family: SmallModel) -> Tensor:
        """The noise that the sound starts from, the same for all. (B, *sound)"""
        sound = _random(self.extras_seed + 1000, 1, *family.sound)
        return torch.cat([sound] * self.batch)

    def prompt(self, family: SmallModel, tokens: int, seed: int) -> list[Any]:
        """In ComfyUI's form: a list of one pair of embedding (P, tokens, width) and dictionary."""
        rows = range(seed, seed + len(self.masked))
        embedding = torch.cat([_random(row, 1, tokens, family.prompt_width) for row in rows])
        size = self.size or family.latent_size()
        extras = family.extras(torch.Generator().manual_seed(self.extras_seed), size)
        if family.mask == "needed" or any(self.masked):
            seen = torch.arange(tokens) < tokens - torch.tensor(self.masked)[:, None]
            extras["attention_mask"] = seen.long()
            embedding = torch.where(seen[..., None], embedding, embedding + self.behind_mask)
        references = torch.Generator().manual_seed(self.reference_seed)
        return [[embedding, {**extras, **family.reference_conditioning(references, size)}]]

    def sample(self, model: ModelPatcher, family: SmallModel, **options: Any) -> Tensor:
        """The latent that ComfyUI's own sampler ends with, without the sound. (B, C, *size)"""
        noise = options.pop("noise", None)
        noise = self.latent(family) if noise is None else noise
        empty = torch.zeros_like(noise)
        if family.references and family.references.within:
            options["noise_mask"] = torch.ones(1, 1, *noise.shape[2:])
        if family.sound:
            sound = self.sound(family)
            noise, empty = NestedTensor([noise, sound]), NestedTensor([empty, sound * 0])
        picture = comfy.sample.sample(
            model,
            noise,
            self.steps,
            self.cfg,
            options.pop("sampler", "euler"),
            "simple",
            self.prompt(family, self.text, self.prompt_seed),
            self.prompt(family, self.uncond_text, self.uncond_seed),
            empty,
            seed=0,
            disable_pbar=True,
            **options,
        )
        # Else the next run collects garbage for half a second, on the trail of a dead clone.
        current_loaded_models.clear()
        return picture.unbind()[0] if family.sound else picture


def _random(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _grid(size: tuple[int, ...], family: SmallModel) -> tuple[int, ...]:
    return tuple(-(-side // cells) for side, cells in zip(size, family.patch, strict=True))
