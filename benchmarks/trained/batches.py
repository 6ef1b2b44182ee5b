"""What a step of training is drawn from: examples, their captions, noise."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from . import codec, text
from .examples import Examples
from .recipe import Recipe


@dataclass(frozen=True)
class Batch:
    """latent, noise: (B, 12, ..., H, W), as the model sees them. context: (B, 77, C).

    spread: (B,), one number in each of [0, 1), [1, 2) ... [B - 1, B): evenly distributed, with less
    variance than independent numbers have.
    """

    latent: Tensor
    noise: Tensor
    context: Tensor
    spread: Tensor


@dataclass(frozen=True)
class Batches:
    """model: its latent's scales. prompts: (captions + 1, 77, C), the last of no words.
    caption_rows: which of ``prompts`` each example of ``data`` has.
    """

    model: ModelPatcher
    data: Examples
    prompts: Tensor
    caption_rows: Tensor
    recipe: Recipe

    @staticmethod
    def make(model: ModelPatcher, data: Examples, recipe: Recipe, folder: Path) -> Batches:
        """folder: where the captions' vectors are kept."""
        captions = sorted(set(data.captions))
        row_of = {caption: row for row, caption in enumerate(captions)}
        caption_rows = torch.tensor([row_of[caption] for caption in data.captions])
        return Batches(model, data, _encode(folder, captions).float(), caption_rows, recipe)

    def draw(self, step: int, device: torch.device) -> Batch:
        """The same for the same step, whatever was drawn before it."""
        stage = self.recipe.find_stage(step)
        generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_000 + step)
        rows = torch.randint(len(self.data.captions), (stage.batch,), generator=generator)
        captions = self.caption_rows[rows]
        unprompted = torch.rand(stage.batch, generator=generator) < self.recipe.without_caption
        captions = torch.where(unprompted, len(self.prompts) - 1, captions)
        bands = codec.split_bands(self.data.batch(rows, stage, generator))  # (B, 12, ..., H, W)
        noise = torch.randn(bands.shape, generator=generator)
        spread = torch.rand(stage.batch, generator=generator)
        return Batch(
            self.model.model.process_latent_in(bands.to(device)),
            noise.to(device),
            self.prompts[captions].to(device),
            torch.arange(stage.batch) + spread,
        )


def _encode(folder: Path, captions: list[str]) -> Tensor:
    """Every caption's vectors and those of no words, (captions + 1, 77, C), kept in the folder."""
    name = hashlib.sha256("\n".join(captions).encode()).hexdigest()[:12]
    place = folder / f"prompts-{name}.pt"
    if place.exists():
        kept: Tensor = torch.load(place)
        return kept
    clip = text.build_encoder()
    prompts = torch.stack([text.encode(clip, caption) for caption in [*captions, ""]]).half()
    torch.save(prompts, place)
    return prompts
