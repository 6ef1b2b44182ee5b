"""One call of ComfyUI's attention function, its tensors in one shape whatever the model's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import comfy.ldm.modules.attention as comfy_attention
import torch
from einops import rearrange
from torch import Tensor

from ...tome_core.proportional import (
    add_size_channels,
    add_sizes_to_mask,
    count_channels,
    make_additive,
)
from ...tome_core.tokens import join_heads
from ...tome_core.window_plan import WindowPlan
from . import kernel_choice
from .run_report import RunReport

Attention = Callable[..., Tensor]

OVERRIDE_KEY = "optimized_attention_override"
"""Where ComfyUI looks in transformer_options for another attention function."""

TAKE_MASKS = frozenset(
    {
        "attention_basic",
        "attention_sub_quad",
        "attention_split",
        "attention_pytorch",
        "attention_xformers",
    }
)
TAKE_CHANNELS = TAKE_MASKS | {"attention_flash"}
"""ComfyUI's attention functions that accept a mask, and any multiple of 8 channels. Functions that
are not named may accept neither: SageAttention pads 72 channels to 128 and refuses 136, and the
mask that forks of it take is added to scores of base 2, where log s weighs too little."""

MOST_CHANNELS = 256
"""Of the flash kernels of PyTorch, FlashAttention and xFormers."""
KEEP_TO_FLASH = frozenset({"attention_flash", "attention_xformers"})
"""With more channels FlashAttention refuses each call, of which ComfyUI warns each time, and
xFormers has no kernel on the newest GPUs."""

HAND_MASKS_ON = frozenset({"attention_flash", "attention3_sage"})
"""ComfyUI's functions that give every call with a mask to PyTorch's attention."""

NOT_WEIGHTED = (
    "proportional_attention is left out where another node or a launch option "
    "sets the attention function"
)


def explain_no_window(earlier: Attention | None) -> str:
    """Why attention cannot be computed in local windows, empty where it can.

    It then takes other kernels, whichever of ComfyUI's functions was to be called.

    earlier: the attention that another node put in place, which is called in any case.
    """
    return "another node sets the attention function" if earlier else ""


def masks_are_free(device: torch.device) -> bool:
    """Whether a mask costs nothing there."""
    return device.type == "cpu"


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

    @property
    def scale(self) -> float:
        """Of the scores."""
        scale: float = self.options.get("scale") or self.q.shape[-1] ** -0.5
        return scale

    def run(self, attention: Attention) -> Tensor:
        """The output of ``attention``: (B, H, Nq, D), or (B, 1, Nq, H·D) if it joins the heads."""
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

    def take_heads(self, some: range) -> AttentionCall:
        """The call with some heads of queries, and the keys and values that these read."""
        repeats = self.heads // self.k.shape[1]
        k, v = (x[:, some.start // repeats : some.stop // repeats] for x in (self.k, self.v))
        mask = self.mask
        if mask is not None and mask.ndim == 4 and mask.shape[1] > 1:
            mask = mask[:, some.start : some.stop]
        q = self.q[:, some.start : some.stop]
        return replace(self, q=q, k=k, v=v, heads=len(some), mask=mask)

    def reshape_output(self, out: Tensor) -> Tensor:
        """What ``run`` gave, in the shape that the caller wants."""
        return out if self.skip_output_reshape else out[:, 0]

    def run_with_mask(self, attention: Attention, sizes: Tensor) -> Tensor:
        """As ``run``, with keys that stand for ``sizes`` tokens, (B or 1, Nk)."""
        return replace(self, mask=add_sizes_to_mask(self.mask, sizes, self.q.dtype)).run(attention)

    def add_channels(self, sizes: Tensor) -> AttentionCall:
        """A call with extra channels of queries and keys that do what ``run_with_mask`` does."""
        options = {name: value for name, value in self.options.items() if name != "scale"}
        q, k, v = add_size_channels(self.q, self.k, self.v, sizes, self.scale)
        return replace(self, q=q, k=k, v=v, options=options)

    def cut_channels(self, out: Tensor, channels: int) -> Tensor:
        """What ``run`` gave, with the first channels of each head alone."""
        heads = 1 if self.skip_output_reshape else self.heads
        out = rearrange(out, "b g n (h d) -> b g n h d", h=heads)
        return out[..., :channels].flatten(3)

    def run_weighed(self, sizes: Tensor) -> Tensor:
        """What ``run_with_mask`` gives, by our own kernel."""
        return self.shape_output(
            kernel_choice.attend_weighed(self.q, self.k, self.v, sizes, self.scale)
        )

    def run_in_windows(self, plan: WindowPlan) -> Tensor:
        """As ``run``, with near keys exact and far keys drawn."""
        mask = None if self.mask is None else make_additive(self.mask, self.q.dtype)
        return self.shape_output(
            kernel_choice.attend_windows(plan, self.q, self.k, self.v, mask, self.scale)
        )

    def shape_output(self, out: Tensor) -> Tensor:
        """(B, H, Nq, D) as ``run`` gives it."""
        return out if self.skip_output_reshape else join_heads(out)[:, None]


@dataclass(frozen=True)
class AttentionFunction:
    """What computes attention: ComfyUI's function, or what another node put in its place.

    earlier: the other node's, which is handed ComfyUI's; None where there is none.
    """

    function: Attention
    earlier: Attention | None

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        run = partial(self.earlier, self.function) if self.earlier else self.function
        return run(*args, **kwargs)

    def choose_weighting(self, call: AttentionCall) -> Literal["mask", "channels", "kernel"] | None:
        """How keys are given their sizes; None where the function may accept neither.

        On a GPU a mask would push PyTorch off its fastest kernels. Where there is one anyway, or
        on a CPU, it costs nothing.
        """
        free = masks_are_free(call.q.device)
        if self.earlier:
            return "mask" if call.mask is not None or free else None
        name = self._find_name(call)
        unmasked = name == "attention_pytorch" and call.mask is None
        if unmasked and kernel_choice.pays(call.q, call.k, call.v):
            return "kernel"
        fits = count_channels(call.q.shape[-1]) <= MOST_CHANNELS
        if name in TAKE_MASKS and (call.mask is not None or free):
            return "mask"
        if name in TAKE_CHANNELS and fits:
            return "channels"
        return "mask" if name in TAKE_MASKS - KEEP_TO_FLASH else None

    def _find_name(self, call: AttentionCall) -> str:
        """Of ComfyUI's function that computes the call: some leave calls to PyTorch's."""
        name = getattr(self.function, "__name__", "")
        masked = call.mask is not None
        handed_on = masked and name in HAND_MASKS_ON
        if name == "attention_sage":
            # An older ComfyUI, which does not ask, gives it every mask.
            takes_masks = getattr(comfy_attention, "SAGE_ATTENTION_SUPPORTS_MASK", True)
            precise = call.options.get("low_precision_attention") is False
            handed_on = precise or (masked and not takes_masks)
        return "attention_pytorch" if handed_on else name

    def run(self, call: AttentionCall, sizes: Tensor | None, report: RunReport) -> Tensor:
        """The output of ``call`` as ``AttentionCall.run`` gives it.

        sizes: (B or 1, Nk) tokens that each key stands for, None where they do not count.
        """
        if sizes is None:
            return call.run(self)
        weighting = self.choose_weighting(call)
        if weighting == "kernel":
            return call.run_weighed(sizes)
        if weighting == "mask":
            return call.run_with_mask(self, sizes)
        if weighting == "channels":
            channels = call.q.shape[-1]
            call = call.add_channels(sizes)  # the narrower tensors are freed here
            return call.cut_channels(call.run(self), channels)
        report.notes.add(NOT_WEIGHTED)
        return call.run(self)
