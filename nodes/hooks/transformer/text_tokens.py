"""How many tokens of the prompt a family puts into the sequences of its picture.

Tokens that the family's row in ``families`` counts as references are not among them. Each function
gets the model, the tokens of its prompt, and all its other inputs by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from .token_counts import count_references

TextCount = Callable[[nn.Module, int, Mapping[str, Any]], int]


def count_prompt_alone(model: nn.Module, prompt: int, given: Mapping[str, Any]) -> int:
    """Nothing else stands before the picture and its references."""
    return prompt


def count_one(model: nn.Module, prompt: int, given: Mapping[str, Any]) -> int:
    """Attention gets the prompt without its padding, and has at least one token of it."""
    return 1


def count_with_registers(model: nn.Module, prompt: int, given: Mapping[str, Any]) -> int:
    """Learned tokens, (1, R, C), stand before the prompt."""
    registers: Any = model.register_tokens
    return prompt + int(registers.shape[1])


def count_with_references(model: nn.Module, prompt: int, given: Mapping[str, Any]) -> int:
    """References are treated as the prompt is: their tokens are no queries beside the picture's."""
    return prompt + count_references([given.get("ref_latents", [])], (1, 1, 1))


def count_until_longest(model: nn.Module, prompt: int, given: Mapping[str, Any]) -> int:
    """The model cuts off the end of a longer prompt."""
    longest: Any = model.txt_max_length
    return min(prompt, int(longest))


def count_with_letters_and_vision(model: nn.Module, prompt: int, given: Mapping[str, Any]) -> int:
    """Beside the prompt stand the bytes of what is to be written, and what a vision model sees."""
    reads_letters = getattr(model, "byt5_in", None) is not None
    letters = _count(given, "txt_byt5") if reads_letters else 0
    return prompt + letters + _count(given, "clip_fea")


def count_numbered(model: nn.Module, prompt: int, given: Mapping[str, Any]) -> int:
    """The prompt is given as numbers of words, and of what a vision model sees: (B, T)."""
    return _count(given, "input_ids")


def count_packed(model: nn.Module, prompt: int, given: Mapping[str, Any]) -> int:
    """The model's own table of its sequence, (start, stop, kind), says where the video begins."""
    layout = given.get("minimax_payload", {}).get("layout")
    return layout.segments[-1][0] if layout else prompt


def count_captions(model: nn.Module, prompt: int, given: Mapping[str, Any]) -> int:
    """Each reference brings a caption and what a vision model sees in it. All are padded."""
    side: Any = model.patch_size
    multiple: Any = getattr(model, "pad_tokens_multiple", None) or 1
    references = given.get("ref_latents", ())
    captions = [each.shape[1] for each in given.get("ref_contexts", ())] if references else []
    counts = [prompt + _count(given, "direct_context")]
    counts += [count_references([each], (1, side, side)) for each in references]
    # Without a caption one multiple of padding stands for it.
    counts += captions + [multiple] * (len(references) - len(captions))
    if references and getattr(model, "siglip_embedder", None) is not None:
        seen = [each.shape[1] * each.shape[2] for each in given.get("siglip_feats", ())]
        seen = seen[: len(references)]
        # The same stands for what is not seen, that of the picture included.
        counts += seen + [multiple] * (len(references) + 1 - len(seen))
    return sum(count + -count % multiple for count in counts)


def _count(given: Mapping[str, Any], name: str) -> int:
    """Tokens of an input, (B, T) or (B, T, C); 0 where it is not given."""
    return given[name].shape[1] if name in given else 0
