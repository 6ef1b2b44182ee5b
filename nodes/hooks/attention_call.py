"""One call of ComfyUI's attention function, its tensors in one shape whatever the model's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from ...tome_core.attention import mask_with_log_sizes, with_log_sizes

Attention = Callable[..., Tensor]

OVERRIDE_KEY = "optimized_attention_override"
"""Where ComfyUI looks in transformer_options for another attention function."""

CALL_KEY = "token_merge_call"
"""Where our own functions find the model call they serve."""

LEFT_OUT = (
    "proportional_attention is left out where another node or a launch option "
    "sets the attention function"
)


@dataclass(frozen=True)
class AttentionCall:
    """q: (B, H, Nq, D). k, v: (B, G, Nk, D) with G = H, or fewer heads of keys than of queries.

    mask: as ComfyUI takes it, keys last. options: everything else that the caller passed on.
    skip_output_reshape: the caller wants (B, H, Nq, D) back and not (B, Nq, H·D).
    """

    q: Tensor
    k: Tensor
    v: Tensor
    heads: int
    mask: Tensor | None
    skip_output_reshape: bool
    options: dict[str, Any]

    @classmethod
    def of(
        cls,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        heads: int,
        mask: Tensor | None = None,
        attn_precision: Any = None,
        skip_reshape: bool = False,
        skip_output_reshape: bool = False,
        **options: Any,
    ) -> AttentionCall:
        """From the arguments of ComfyUI's attention functions."""
        if not skip_reshape:
            channels = q.shape[-1] // heads
            # SD 3 hands over values whose heads are split off already.
            q, k, v = (
                rearrange(x.flatten(2), "b n (h d) -> b h n d", d=channels) for x in (q, k, v)
            )
        options = {**options, "attn_precision": attn_precision}
        return cls(q, k, v, heads, mask, skip_output_reshape, options)

    def run(self, attention: Attention) -> Tensor:
        """Of ComfyUI's ``attention``: (B, H, Nq, D), or (B, 1, Nq, H·D) if it joins the heads."""
        out = attention(
            self.q,
            self.k,
            self.v,
            self.heads,
            mask=self.mask,
            skip_reshape=True,
            skip_output_reshape=self.skip_output_reshape,
            **self.options,
        )
        return out if self.skip_output_reshape else out[:, None]

    def returned(self, out: Tensor) -> Tensor:
        """What ``run`` gave, in the shape that the caller wants."""
        return out if self.skip_output_reshape else out[:, 0]

    def run_with_sizes(self, attention: Attention, sizes: Tensor) -> Tensor:
        """As ``run``, with keys that stand for ``sizes`` tokens, (B or 1, Nk)."""
        if self.takes_mask:
            mask = mask_with_log_sizes(self.mask, sizes, self.q.dtype)
            return replace(self, mask=mask).run(attention)
        # Values are filled up to as many channels as queries and keys get, and cut off after.
        channels = self.q.shape[-1]
        scale = self.options.get("scale") or channels**-0.5
        q, k = with_log_sizes(self.q, self.k, sizes, scale)
        wide = replace(
            self,
            q=q,
            k=k,
            v=F.pad(self.v, (0, q.shape[-1] - channels)),
            options={**self.options, "scale": scale},
        )
        heads = 1 if self.skip_output_reshape else self.heads
        out = rearrange(wide.run(attention), "b g n (h d) -> b g n h d", h=heads)
        return out[..., :channels].flatten(3)

    @property
    def takes_mask(self) -> bool:
        """True where a mask costs nothing: there is one anyway, or the kernel is the CPU's.

        On a GPU it would push PyTorch off its fastest kernel, which extra channels do not.
        """
        return self.mask is not None or self.q.device.type == "cpu"

    def takes_sizes(self, attention: Attention, earlier: Attention | None) -> bool:
        """False where ``attention`` may accept few numbers of channels and no mask.

        earlier: the attention that another node put in its place, None where there is none.
        """
        known = earlier is None and "sage" not in getattr(attention, "__name__", "")
        return self.takes_mask or known
