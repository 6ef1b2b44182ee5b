"""One call of a transformer, and the block that runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ....tome_core.grid import Stream
from ....tome_core.plan import Skipped
from ..attention.call import Attention, Container, peek
from ..attention.overrides import Override
from ..run.state import ModelCall, find_call
from .sequence import REFERENCES_KEY, SequenceLayout

BLOCK_KEY = "block_index"
"""ComfyUI's models tell under this key which block is running."""
INPUT_PATCHES = "post_input"
"""Such patches may put tokens beside those of the prompt, as ComfyUI's USOStyleReference does."""


@dataclass(frozen=True)
class Block:
    """A transformer block by its number, from 0 in the order in which they run."""

    number: int

    downsample = 1

    @property
    def key(self) -> tuple[int | str, ...]:
        return ("block", self.number)

    def __str__(self) -> str:
        return f"block {self.number}"


@dataclass
class TransformerCall:
    """One call of a transformer.

    Args:
        model: what both architectures know of the call.
        layout: where the picture lies in its sequences.
        first_single: number of the first block of the kind that ComfyUI calls "single".
        override: the attention that another node put in place, None where there is none.
        unreduced: see ``ModelCall.find_unreduced``.
        count_calls: see ``Family``, for the model that is called.
        preferred: the attention that the checkpoint asks for, None where it asks for none.
        numbered: calls until now in which the picture attends to itself, of a model that does not
            tell its block, with those of blocks that another node left out.
        before_block: how many these were before the block that another node replaced.
        refined: a sequence with the prompt came, so that the refiners are done.
        text: tokens of the prompt as patches of other nodes made it, None where there are none.
    """

    model: ModelCall
    layout: SequenceLayout
    first_single: int
    override: Override | None
    unreduced: set[Hashable]
    count_calls: Callable[[str, int], int]
    preferred: Attention | None = None
    numbered: int = 0
    before_block: int = 0
    refined: bool = False
    text: int | None = None

    def find_block(self, options: Mapping[str, Any]) -> Block | None:
        """The block that runs, None within a refiner before or between the blocks."""
        if not self.layout.family.tells_block:
            self.numbered += 1
            return Block(self.numbered - 1)
        index = options.get(BLOCK_KEY)
        if index is None:
            return None
        first = self.first_single if options.get("block_type") == "single" else 0
        return Block(first + index)

    def name_attention(
        self, options: Mapping[str, Any], q: Tensor | Container, k: Tensor | Container
    ) -> Hashable:
        """All that the plans of an attention call depend on here.

        None where the model does not tell which block is running: earlier calls count then.
        """
        index = options.get(BLOCK_KEY)
        if index is None or not self.layout.family.tells_block:
            return None
        sides = peek(q).shape, peek(k).shape
        return options.get("block_type"), index, _read_references(options), sides

    def find_stream(self, tokens: int, options: Mapping[str, Any]) -> Stream | Skipped:
        """The picture's place among these tokens, skipped within a refiner before the blocks."""
        stream = self.layout.find_stream(tokens, _read_references(options), self.text)
        if not self.layout.family.has_refiners or isinstance(stream, Skipped):
            return stream
        self.refined |= stream.before > self.layout.references
        return stream if self.refined else Skipped("the picture is refined without the prompt")


def _read_references(options: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Tokens of each reference image, None where ComfyUI does not tell."""
    told = options.get(REFERENCES_KEY)
    return None if told is None else tuple(told)


def watch_prompt(options: dict[str, Any]) -> dict[str, Any]:
    """transformer_options in which our patch sees what other nodes made of the prompt."""
    patches = options.get("patches", {})
    others = patches.get(INPUT_PATCHES)
    if not others:
        return options
    return {**options, "patches": {**patches, INPUT_PATCHES: [*others, _note_prompt]}}


@torch.compiler.disable
def _note_prompt(inputs: dict[str, Any]) -> dict[str, Any]:
    call: TransformerCall | None = find_call(inputs.get("transformer_options", {}))
    if call and "txt" in inputs:
        call.text = inputs["txt"].shape[1]
    return inputs
