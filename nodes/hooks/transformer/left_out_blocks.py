"""Counts the attention calls that other nodes leave out of a model that does not tell its block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..run.state import find_call
from .call import TransformerCall

REPLACEMENTS = "patches_replace"
"""Under this key other nodes put what is called in place of a block, as of ("double_block", 3)."""
PERTURBED_KEY = "stg_self_attn_blocks"
"""ComfyUI's LTXVSpatioTemporalGuidance gives the blocks whose self-attention LTX-2 leaves out."""


def watch_blocks(options: dict[str, Any]) -> dict[str, Any]:
    """transformer_options in which the attention calls are counted that another node leaves out.

    Else blocks behind them had other numbers, and draws, than where none is left out. Skip-layer
    and spatio-temporal guidance take the one prediction off the other, and multiply the difference.
    """
    replacements = options.get(REPLACEMENTS, {})
    numbers = options.get(PERTURBED_KEY) or ()
    perturbed = {("double_block", number): _run_block for number in numbers}
    blocks = {**perturbed, **replacements.get("dit", {})}
    if not blocks:
        return options
    watched = {key: WatchedBlock(key, replacement) for key, replacement in blocks.items()}
    return {**options, REPLACEMENTS: {**replacements, "dit": watched}}


def _run_block(inputs: dict[str, Any], others: dict[str, Any]) -> Any:
    return others["original_block"](inputs)


@dataclass(frozen=True)
class WatchedBlock:
    """What another node put in place of a block; the block's kind and number are its key."""

    key: tuple[str, int]
    replacement: Callable[..., Any]

    def __call__(self, inputs: dict[str, Any], *others: Any) -> Any:
        options = inputs.get("transformer_options", {})
        _begin_block(options)
        out = self.replacement(inputs, *others)
        _end_block(options, self.key)
        return out


@torch.compiler.disable
def _begin_block(options: Mapping[str, Any]) -> None:
    call: TransformerCall | None = find_call(options)
    if call:
        call.before_block = call.numbered


@torch.compiler.disable
def _end_block(options: Mapping[str, Any], key: tuple[str, int]) -> None:
    call: TransformerCall | None = find_call(options)
    if call and call.numbered == call.before_block:
        call.numbered += call.count_calls(*key)
