"""Where the picture lies in the attention sequences of one model call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ....tome_core.grid import TokenGrid
from ....tome_core.plan import Skipped
from ....tome_core.streams import Stream
from .arrangement import Arrangement, Interwoven, KeysAlone
from .families import Family

REFERENCES_KEY = "reference_image_num_tokens"
"""Under which ComfyUI's models tell how many tokens each reference image has."""
SHAPES_KEY = "latent_shapes"
"""Under which ComfyUI names the shapes of latents that are packed into one, the video's first."""


@dataclass(frozen=True)
class Layout:
    """A family's layout, with the sizes of one model call.

    Args:
        family: how the model lays out its sequences.
        grid: of the picture or video.
        references: tokens right before the picture.
        references_behind: tokens right behind the picture, padding included.
        least_text: fewest tokens of the prompt.
        beside: tokens of a reference by which each row of the picture is prolonged; they count as
            behind the picture.
        cross_attention: numbers of tokens that cross-attention reads.
    """

    family: Family
    grid: TokenGrid
    references: int
    references_behind: int
    least_text: int
    beside: int
    cross_attention: tuple[int, ...]

    def find_stream(self, length: int, transformer_options: Mapping[str, Any]) -> Stream | Skipped:
        """The picture's place in a sequence of ``length`` tokens.

        Skipped where the sequence does not look as the family's do.
        """
        behind = self.references_behind
        if self.family.counts_references:
            told = transformer_options.get(REFERENCES_KEY)
            if told is None and behind:
                return Skipped("this ComfyUI does not tell where its references are")
            behind = sum(told or ())
        rest = length - self.references - self.grid.tokens - behind
        if self.family.text == "apart":
            if length in self.cross_attention:
                return Skipped(
                    f"its {length} tokens are as many as the prompt's, "
                    f"so that self-attention cannot be told from cross-attention"
                )
            expected = rest == 0
        else:
            alone = self.family.also_alone and rest == 0
            expected = alone or rest >= self.least_text
        if not expected:
            return Skipped(f"its {length} tokens do not fit the {self.grid} tokens of the picture")
        if self.family.text == "after":
            return Stream(self.grid, self.references, behind + rest)
        return Stream(self.grid, rest + self.references, behind)

    def find_arrangement(self, stream: Stream, device: torch.device) -> Arrangement:
        """How a call on the tokens of ``stream`` becomes one that plans are of."""
        if self.beside:
            return Interwoven.weave(self.grid, self.beside, stream.length, device)
        asking = self.family.asking_text
        if asking is None:
            return KeysAlone()
        alone = stream.others - self.references - self.references_behind - asking
        return KeysAlone(after=alone) if self.family.text == "after" else KeysAlone(before=alone)


def read_layout(
    family: Family,
    model: nn.Module,
    latent: Tensor,
    prompt: Tensor | None,
    conditioning: Mapping[str, Any],
) -> Layout | Skipped:
    """The layout of a call with these inputs.

    latent: (B, C, H, W), (B, C, F, H, W), or several latents packed. prompt: (B, T, D). Skipped
    where the picture's place in the sequences is not known.
    """
    given = {name for name, value in conditioning.items() if value is not None}
    for name in family.other_layout:
        if name in given:
            return Skipped(f"{family.name} lays tokens out anew with {name}")
    patch = family.find_patch(model)
    shape, *_ = _list_shapes(latent, conditioning)
    tokens = _count_sides(shape, patch) if len(shape) in (4, 5) else (0, 0, 0)
    if math.prod(tokens) == 0:
        return Skipped(f"its latent has shape {tuple(latent.shape)}")
    grid = TokenGrid(frames=tokens[0], height=tokens[1], width=tokens[2])
    references = [
        conditioning[name]
        for name, module in family.references
        if name in given and getattr(model, module, None) is not None
    ]
    behind = [conditioning[name] for name in family.references_behind if name in given]
    beside = _count_beside(conditioning.get(family.beside or ""), shape[-1], patch[-1])
    multiple = getattr(model, family.padding) if family.padding else None
    return Layout(
        family=family,
        grid=grid,
        references=_count_tokens(references, patch),
        references_behind=_count_tokens(behind, patch)
        + grid.tokens // grid.width * beside
        + (-grid.tokens % multiple if multiple else 0),
        least_text=_count_prompt(prompt) if family.least_text is None else family.least_text,
        beside=beside,
        cross_attention=(_count_prompt(prompt), *family.prompt_tokens),
    )


def _list_shapes(latent: Tensor, conditioning: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Of all latents of the call, the picture's first."""
    packed = conditioning.get(SHAPES_KEY) or ()
    return [tuple(shape) for shape in (packed if len(packed) > 1 else [latent.shape])]


def _count_sides(shape: tuple[int, ...], patch: tuple[int, int, int]) -> tuple[int, int, int]:
    """Frames, rows and columns of tokens; a side that the patch does not divide is padded."""
    sides = (*[1] * (5 - len(shape)), *shape[2:])
    frames, height, width = (
        math.ceil(side / size) for side, size in zip(sides, patch, strict=True)
    )
    return frames, height, width


def _count_beside(reference: Tensor | None, width: int, columns: int) -> int:
    """Tokens that a reference adds to each row; one that lies on both is the picture's."""
    if reference is None:
        return 0
    return math.ceil((width + reference.shape[-1]) / columns) - math.ceil(width / columns)


def _count_tokens(references: list[Any], patch: tuple[int, int, int]) -> int:
    """Tokens of all these latents, or lists of latents; one of shape (B, N, C) has N."""
    latents: list[Tensor] = []
    for reference in references:
        latents += reference if isinstance(reference, list | tuple) else [reference]
    shapes = [tuple(latent.shape) for latent in latents]
    return sum(
        shape[1] if len(shape) == 3 else math.prod(_count_sides(shape, patch)) for shape in shapes
    )


def _count_prompt(prompt: Tensor | None) -> int:
    return prompt.shape[1] if prompt is not None and prompt.ndim > 1 else 0
