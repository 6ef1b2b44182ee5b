"""Watches calls of ComfyUI's attention function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from token_merge.nodes.hooks.attention.overrides import OVERRIDE_KEY
from torch import Tensor

Note = Callable[[Tensor, Tensor, Mapping[str, Any]], None]
"""It gets queries, keys and keyword arguments of a call."""


def watch_attention(
    model: ModelPatcher, note: Note, note_own: Callable[..., None] = lambda *_, **__: None
) -> ModelPatcher:
    """A clone whose calls of attention are noted.

    Its wrapper is the last, so that it finds the override that others put in place.
    note: of ComfyUI's function, whoever calls it. note_own: gets the arguments of a call that the
    override computed without ComfyUI's function.
    """

    def watch(executor: WrapperExecutor, *args: Any, **kwargs: Any) -> Tensor:
        *before, options = args
        override = options.get(OVERRIDE_KEY)

        def attend(attention: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
            calls = 0

            @wraps(attention)  # overrides tell by its name what it can do
            def noted(q: Tensor, k: Tensor, *args: Any, **kwargs: Any) -> Tensor:
                nonlocal calls
                calls += 1
                note(q, k, kwargs)
                return attention(q, k, *args, **kwargs)

            if override is None:
                return noted(*args, **kwargs)
            out: Tensor = override(noted, *args, **kwargs)
            if not calls:
                note_own(*args, **kwargs)
            return out

        return executor(*before, {**options, OVERRIDE_KEY: attend}, **kwargs)

    clone = model.clone()
    clone.add_wrapper_with_key(WrappersMP.APPLY_MODEL, "benchmark_attention", watch)
    return clone


def find_tokens_dim(options: Mapping[str, Any]) -> int:
    """The dimension that counts tokens, by the keyword arguments of an attention call."""
    return 2 if options.get("skip_reshape") else 1
