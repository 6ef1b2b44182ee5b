"""What reaches the attention of a model, noted from where other nodes sit too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from comfy.model_patcher import ModelPatcher
from einops import rearrange
from torch import Tensor


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One call. q: (B, Nq, C); k: (B, Nk, Ck); v: (B, Nk, Cv); mask as the model gave it."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None

    @property
    def lengths(self) -> tuple[int, int]:
        """(Nq, Nk)"""
        return self.q.shape[1], self.k.shape[1]


class AttentionRecord:
    """The attention calls of one or more runs, in order."""

    def __init__(self) -> None:
        self.calls: list[AttentionCall] = []

    @property
    def lengths(self) -> list[tuple[int, int]]:
        """(Nq, Nk) of every call."""
        return [call.lengths for call in self.calls]

    def before(self, model: ModelPatcher) -> ModelPatcher:
        """A clone with an override that notes and goes on.

        A node that comes later and keeps this override calls it in turn, so it notes what that
        node hands to the kernel.
        """
        return self._install(model, None)

    def after(self, model: ModelPatcher) -> ModelPatcher:
        """The same for a node that comes later than others: notes what the model hands over."""
        options = model.model_options["transformer_options"]
        return self._install(model, options.get("optimized_attention_override"))

    def _install(self, model: ModelPatcher, previous: Callable[..., Any] | None) -> ModelPatcher:
        def override(attention: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            self.calls.append(_noted(*args, **kwargs))
            if previous is not None:
                return previous(attention, *args, **kwargs)
            return attention(*args, **kwargs)

        clone = model.clone()
        clone.model_options["transformer_options"]["optimized_attention_override"] = override
        return clone


def _noted(
    q: Tensor, k: Tensor, v: Tensor, heads: int, mask: Tensor | None = None, *args: Any, **kw: Any
) -> AttentionCall:
    heads_first = bool(kw.get("skip_reshape"))
    q, k, v = (_tokens_second(x, heads_first) for x in (q, k, v))
    return AttentionCall(q, k, v, None if mask is None else mask.clone())


def _tokens_second(x: Tensor, heads_first: bool) -> Tensor:
    """(B, H, N, D), (B, N, H, D) or (B, N, C) -> (B, N, C), copied: models write in place."""
    if x.ndim == 4:
        x = rearrange(x, "b h n d -> b n (h d)" if heads_first else "b n h d -> b n (h d)")
    return x.clone()
