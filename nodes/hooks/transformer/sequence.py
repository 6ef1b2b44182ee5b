"""Where the picture lies in the attention sequences of one model call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
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
    list_shapes,
)

REFERENCES_KEY = "reference_image_num_tokens"
"""ComfyUI's models tell under this key how many tokens each reference image has."""


@dataclass(frozen=True)
class SequenceLayout:
    """A family's layout, with the sizes of one model call.

    Args:
        family: how the model lays out its sequences.
        grid: of the picture or video.
        references: tokens right before the picture.
        references_behind: tokens right behind the picture, guides and padding included.
        text: tokens of the prompt in the picture's sequence, see ``Family.count_text``.
        beside: tokens of a reference by which each row of the picture is prolonged; they count as
            behind the picture.
        lengths_apart: how many tokens other sequences of the model have: the prompt, and the
            sound.
    """

    family: Family
    grid: TokenGrid
    references: int
    references_behind: int
    text: int
    beside: int
    lengths_apart: tuple[int, ...]

    # Without tensors, so no constant: a model may itself pause the record of its blocks meanwhile.
    @lru_cache(maxsize=256)  # noqa: B019
    def find_stream(
        self, length: int, told: tuple[int, ...] | None = None, text: int | None = None
    ) -> Stream | Skipped:
        """The picture's place in a sequence of ``length`` tokens.

        Skipped where the tokens are not as many as the parts of the family's sequences. Else what
        the model puts into them beside these would be taken for the prompt, and another part of the
        sequence for the picture.

        told: tokens of each reference image, None where ComfyUI does not tell. text: of the prompt
        as another node made it, None where no other did.
        """
        behind = self.references_behind
        text = self.text if text is None else text
        rest = length - self.references - self.grid.tokens
        if self.family.counts_references:
            # A model may leave them out, as Krea 2 does where no method is given for them.
            if told is None and behind and not self._fits(rest, text):
                return Skipped("this ComfyUI does not tell where its references are")
            behind = sum(told or ())
        rest -= behind
        if not self._fits(rest, text):
            parts = [f"the {self.grid} tokens of the picture"]
            parts += [f"the {count} {place} it" for count, place in self._list_others(text, behind)]
            return Skipped(f"its {length} tokens do not fit {' and '.join(parts)}")
        if self.family.text == "after":
            return Stream(self.grid, self.references, behind + rest)
        return Stream(self.grid, rest + self.references, behind)

    def is_apart(self, length: int) -> bool:
        """Whether a model also attends among this many tokens, none of which are the picture's."""
        before = self.family.text == "before" and self.family.prompt_queries == 0
        return length in self.lengths_apart or (before and length < self.text + self.grid.tokens)

    def _fits(self, rest: int, text: int) -> bool:
        """rest: tokens beside the picture and its references."""
        family = self.family
        if rest == 0 and (family.has_refiners or family.picture_alone):
            return True
        return rest >= text if family.text == "after" else rest == text

    def _list_others(self, text: int, behind: int) -> list[tuple[int, str]]:
        """How many tokens stand beside the picture, and where."""
        first, last = (0, text) if self.family.text == "after" else (text, 0)
        counts = (self.references + first, "before"), (behind + last, "behind")
        return [each for each in counts if each[0]]

    @constant
    def find_arrangement(self, stream: Stream, device: torch.device) -> Arrangement:
        """How a call on the tokens of ``stream`` becomes one that plans are of."""
        if self.beside:
            return Interwoven.weave(self.grid, self.beside, stream.length, device)
        prompt_queries = self.family.prompt_queries
        if prompt_queries is None:
            return KeysAlone()
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
    shape, *sounds = list_shapes(latent, conditioning)
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
    beside = count_beside(given.get(family.beside or ""), shape[-1], patch[-1])
    behind = guides + grid.tokens // grid.width * beside + _count_behind(family, given, patch)
    multiple = getattr(model, family.padding, None) if family.padding else None
    layout = SequenceLayout(
        family=family,
        grid=grid,
        references=count_references(references, patch),
        references_behind=behind + (-(grid.tokens + behind) % multiple if multiple else 0),
        text=0 if family.text == "apart" else family.count_text(model, count_prompt(prompt), given),
        beside=beside,
        lengths_apart=(
            count_prompt(prompt),
            *family.prompt_tokens,
            *(count_sounds(sounds, given.get(family.sound)) if family.sound else ()),
        ),
    )
    length = layout.references + grid.tokens + layout.references_behind
    if family.text == "apart" and length in layout.lengths_apart:
        others = "the prompt or the sound" if family.sound else "the prompt"
        return Skipped(
            f"its {length} tokens are as many as those of {others}, "
            f"so that self-attention cannot be told from cross-attention"
        )
    return layout


def _count_behind(family: Family, given: Mapping[str, Any], patch: tuple[int, int, int]) -> int:
    """Tokens of all references that stand behind the picture."""
    references = [given[name] for name in family.references_behind if name in given]
    sized = [(given[name], sizes) for name, sizes in family.sizes_behind if name in given]
    return count_references(references, patch) + sum(count_sized(*each) for each in sized)
