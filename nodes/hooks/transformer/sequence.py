"""Where the picture lies in the attention sequences of one model call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ....tome_core.constants import constant
from ....tome_core.grid import Stream, TokenGrid
from ....tome_core.plan import Skipped
from .arrangement import Arrangement, Interwoven, KeysAlone
from .families import Family
from .token_counts import (
    count_beside,
    count_guides,
    count_prompt,
    count_references,
    count_sides,
    count_sized,
    count_sounds,
)

REFERENCES_KEY = "reference_image_num_tokens"
"""ComfyUI's models tell under this key how many tokens each reference image has."""
SHAPES_KEY = "latent_shapes"
"""ComfyUI names under this key the shapes of latents that are packed into one, the video's
first."""


@dataclass(frozen=True)
class SequenceLayout:
    """A family's layout, with the sizes of one model call.

    Args:
        family: how the model lays out its sequences.
        grid: of the picture or video.
        references: tokens right before the picture.
        references_behind: tokens right behind the picture, guides and padding included.
        least_text: fewest tokens of the prompt in the picture's sequence.
        beside: tokens of a reference by which each row of the picture is prolonged; they count as
            behind the picture.
        others: numbers of tokens of what stands apart: the prompt, and the sound.
    """

    family: Family
    grid: TokenGrid
    references: int
    references_behind: int
    least_text: int
    beside: int
    others: tuple[int, ...]

    @constant
    def find_stream(self, length: int, told: tuple[int, ...] | None = None) -> Stream | Skipped:
        """The picture's place in a sequence of ``length`` tokens.

        Skipped where the sequence does not look as the family's do.

        told: tokens of each reference image, None where ComfyUI does not tell.
        """
        behind = self.references_behind
        if self.family.counts_references:
            if told is None and behind:
                return Skipped("this ComfyUI does not tell where its references are")
            behind = sum(told or ())
        rest = length - self.references - self.grid.tokens - behind
        apart = self.family.text == "apart"
        alone = self.family.has_refiners and rest == 0
        if not alone and (rest < self.least_text or (apart and rest > 0)):
            beside = f" and the {behind} behind it" if behind else ""
            return Skipped(
                f"its {length} tokens do not fit the {self.grid} tokens of the picture{beside}"
            )
        if self.family.text == "after":
            return Stream(self.grid, self.references, behind + rest)
        return Stream(self.grid, rest + self.references, behind)

    @constant
    def find_arrangement(self, stream: Stream, device: torch.device) -> Arrangement | None:
        """How a call on the tokens of ``stream`` becomes one that plans are of; None: it is one."""
        if self.beside:
            return Interwoven.weave(self.grid, self.beside, stream.length, device)
        prompt_queries = self.family.prompt_queries
        if prompt_queries is None:
            return None
        alone = stream.others - self.references - self.references_behind - prompt_queries
        return KeysAlone(after=alone) if self.family.text == "after" else KeysAlone(before=alone)


def read_layout(
    family: Family,
    model: nn.Module,
    latent: Tensor,
    prompt: Tensor | None,
    conditioning: Mapping[str, Any],
) -> SequenceLayout | Skipped:
    """The layout of a call with these inputs.

    latent: (B, C, H, W), (B, C, F, H, W), or several latents packed. prompt: (B, T, D). Skipped
    where the picture's place in the sequences is not known.
    """
    given = {name: value for name, value in conditioning.items() if value is not None}
    patch = family.find_patch(model)
    shape, *sounds = _list_shapes(latent, conditioning)
    tokens = count_sides(shape, patch) if len(shape) in (4, 5) else (0, 0, 0)
    if math.prod(tokens) == 0:
        return Skipped(f"its latent has shape {tuple(latent.shape)}")
    frames, height, width = tokens
    guides = count_guides(given.get(family.guides or ""))
    if guides % (height * width) or guides >= math.prod(tokens):
        return Skipped(f"its {guides} guide tokens are not the last frames of its latent")
    grid = TokenGrid(frames=frames - guides // (height * width), height=height, width=width)
    references = [
        given[name]
        for name, module in family.references
        if name in given and getattr(model, module, None) is not None
    ]
    behind = [given[name] for name in family.references_behind if name in given]
    beside = count_beside(given.get(family.beside or ""), shape[-1], patch[-1])
    sized = [(given[name], sizes) for name, sizes in family.sizes_behind if name in given]
    multiple = getattr(model, family.padding) if family.padding else None
    layout = SequenceLayout(
        family=family,
        grid=grid,
        references=count_references(references, patch),
        references_behind=guides
        + count_references(behind, patch)
        + sum(count_sized(*each) for each in sized)
        + grid.tokens // grid.width * beside
        + (-grid.tokens % multiple if multiple else 0),
        least_text=_count_least_text(family, prompt),
        beside=beside,
        others=(
            count_prompt(prompt),
            *family.prompt_tokens,
            *(count_sounds(sounds, given.get(family.sound)) if family.sound else ()),
        ),
    )
    length = layout.references + grid.tokens + layout.references_behind
    if family.text == "apart" and length in layout.others:
        others = "the prompt or the sound" if family.sound else "the prompt"
        return Skipped(
            f"its {length} tokens are as many as those of {others}, "
            f"so that self-attention cannot be told from cross-attention"
        )
    return layout


def _list_shapes(latent: Tensor, conditioning: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Of all latents of the call, the picture's first."""
    packed = conditioning.get(SHAPES_KEY) or ()
    return [tuple(shape) for shape in (packed if len(packed) > 1 else [latent.shape])]


def _count_least_text(family: Family, prompt: Tensor | None) -> int:
    """Fewest tokens of the prompt in the picture's sequence."""
    if family.text == "apart":
        return 0
    return count_prompt(prompt) if family.least_text is None else family.least_text
