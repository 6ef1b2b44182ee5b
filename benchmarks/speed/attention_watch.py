"""Attention calls of transformers: their lengths, and the time spent around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import torch
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from token_merge.nodes.hooks.attention_call import OVERRIDE_KEY
from torch import Tensor

from .clocks import Stopwatch


class AttentionWatch:
    """Watches one run.

    lengths: how often attention got how many (queries, keys), cross-attention to the
    ``prompt_tokens`` of the prompt left out. Queries of all groups together, of a single row.
    """

    def __init__(self, device: torch.device, prompt_tokens: int) -> None:
        self.lengths: Counter[tuple[int, int]] = Counter()
        self._prompt_tokens = prompt_tokens
        self._override = Stopwatch(device)
        self._attention = Stopwatch(device)

    def attach(self, model: ModelPatcher) -> ModelPatcher:
        """A clone that is watched.

        The wrapper is its last, so that it finds the override that the others put in place.
        """
        clone = model.clone()
        clone.add_wrapper_with_key(WrappersMP.APPLY_MODEL, "benchmark_attention", self._watch)
        return clone

    def seconds_in_override(self) -> float:
        """In the override and not in the attention function that it calls; waits for the device."""
        return self._override.seconds() - self._attention.seconds()

    def _watch(self, executor: WrapperExecutor, *args: Any, **kwargs: Any) -> Tensor:
        *before, options = args
        override = options.get(OVERRIDE_KEY)

        def attend(attention: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
            noted = self._noting(attention)
            if override is None:
                return noted(*args, **kwargs)
            # With the function's own name, by which overrides tell what it can do.
            inner = wraps(attention)(self._attention.timed(noted))
            return self._override.timed(override)(inner, *args, **kwargs)

        return executor(*before, {**options, OVERRIDE_KEY: attend}, **kwargs)

    def _noting(self, attention: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def noting(q: Tensor, k: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            dim = tokens_dim(kwargs)
            if k.shape[dim] != self._prompt_tokens:
                self.lengths[len(q) * q.shape[dim], k.shape[dim]] += 1
            return attention(q, k, *args, **kwargs)

        return noting


def tokens_dim(options: Mapping[str, Any]) -> int:
    """The dimension that counts tokens, by the keyword arguments of an attention call."""
    return 2 if options.get("skip_reshape") else 1
