"""One call of ComfyUI's attention function, its tensors in one shape whatever the model's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from einops import rearrange
from torch import Tensor

from ....tome_core import windows
from ....tome_core.attention.key_weights import make_additive
from ....tome_core.tokens import join_heads

Attention = Callable[..., Tensor]


class Container(Protocol):
    """ComfyUI's holder of a tensor for an attention function (``AttentionTensorContainer``).

    Whoever takes the tensor out is the only one who holds it, and frees it early.
    """

    def peek(self) -> Tensor:
        """The tensor, which stays in."""

    def take(self) -> Tensor:
        """The tensor, which is no longer in."""


def peek(x: Tensor | Container) -> Tensor:
    """A tensor, in a container or not."""
    return x if isinstance(x, Tensor) else x.peek()


def take(x: Tensor | Container) -> Tensor:
    """A tensor, out of its container where it is in one."""
    return x if isinstance(x, Tensor) else x.take()


@dataclass(frozen=True)
class AttentionCall:
    """The arguments of one call.

    Args:
        q: (B, H, Nq, D).
        k, v: (B, G, Nk, D) with G = H, or fewer heads of keys than of queries.
        heads: H.
        mask: as ComfyUI takes it, keys last.
        skip_output_reshape: the caller wants (B, H, Nq, D) back and not (B, Nq, H·D).
        options: everything else that the caller passed on.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    heads: int
    mask: Tensor | None
    skip_output_reshape: bool
    options: dict[str, Any]

    @classmethod
    def read(
        cls,
        q: Tensor | Container,
        k: Tensor | Container,
        v: Tensor | Container,
        heads: int,
        mask: Tensor | None = None,
        attn_precision: Any = None,
        skip_reshape: bool = False,
        skip_output_reshape: bool = False,
        **options: Any,
    ) -> AttentionCall:
        """From the arguments of ComfyUI's attention functions; containers stay as they are."""
        q, k, v = (peek(x) for x in (q, k, v))
        if not skip_reshape:
            channels = q.shape[-1] // heads
            # SD 3 hands over values whose heads are split off already.
            q, k, v = (
                rearrange(x.flatten(2), "b n (h d) -> b h n d", d=channels) for x in (q, k, v)
            )
        options = {**options, "attn_precision": attn_precision}
        return cls(q, k, v, heads, mask, skip_output_reshape, options)

    @property
    def scale(self) -> float:
        """The factor of the scores."""
        scale: float = self.options.get("scale") or self.q.shape[-1] ** -0.5
        return scale

    def run(self, attention: Attention) -> Tensor:
        """The output of ``attention``, (B, Nq, H·D) or (B, H, Nq, D) as the caller wants it."""
        return attention(
            self.q,
            self.k,
            self.v,
            self.heads,
            mask=self.mask,
            skip_reshape=True,
            skip_output_reshape=self.skip_output_reshape,
            **self.options,
        )

    def run_in_windows(self, plan: windows.WindowPlan) -> Tensor:
        """As ``run``, with near keys exact and far keys drawn."""
        mask = None if self.mask is None else make_additive(self.mask, self.q.dtype)
        return self.shape_output(windows.attend(plan, self.q, self.k, self.v, mask, self.scale))

    def shape_output(self, out: Tensor) -> Tensor:
        """(B, H, Nq, D) as the caller wants it."""
        return out if self.skip_output_reshape else join_heads(out)

    def take_heads(self, some: range) -> AttentionCall:
        """The call with some heads of queries, and the keys and values that these read."""
        repeats = self.heads // self.k.shape[1]
        k, v = (x[:, some.start // repeats : some.stop // repeats] for x in (self.k, self.v))
        mask = self.mask
        if mask is not None and mask.ndim == 4 and mask.shape[1] > 1:
            mask = mask[:, some.start : some.stop]
        q = self.q[:, some.start : some.stop]
        return replace(self, q=q, k=k, v=v, heads=len(some), mask=mask)
