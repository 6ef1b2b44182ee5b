"""Which function computes attention, and how keys get their weights there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import comfy.ldm.modules.attention as comfy_attention
import torch
from einops import rearrange
from torch import Tensor

from ....tome_core.attention import attend_weighed
from ....tome_core.attention.key_weights import add_size_channels, add_sizes_to_mask, count_channels
from ....tome_core.faster_forms import find_form
from ....tome_core.layer import Layer, Precision
from ..run.report import RunReport
from .backend_speeds import find_speed
from .call import Attention, AttentionCall, Container, asks_for_gradients, take
from .override_table import SAGE_ALONE
from .overrides import Override

TAKE_MASKS = frozenset(
    {
        "attention_basic",
        "attention_sub_quad",
        "attention_split",
        "attention_pytorch",
        "attention_xformers",
    }
)
TAKE_MASKS_FREELY = frozenset({"attention_comfy_kitchen_int8"})
"""A mask of one row for all queries costs these next to nothing: their kernels read it beside the
scales of the keys."""

TAKE_CHANNELS = TAKE_MASKS | {"attention_flash"}
"""These attention functions of ComfyUI accept a mask, and any multiple of 8 channels. Functions
that are not named may accept neither: SageAttention pads 72 channels to 128 and refuses 136, and
the mask that forks of it take is added to scores of base 2, where log s weighs too little."""

MOST_CHANNELS = 256
"""The flash kernels of PyTorch, FlashAttention and xFormers take heads of at most so many."""

KEEP_TO_FLASH = frozenset({"attention_flash", "attention_xformers"})
"""With more channels FlashAttention refuses each call, of which ComfyUI warns each time, and
xFormers has no kernel on the newest GPUs."""

HAND_MASKS_ON = frozenset({"attention_flash", "attention3_sage"})
"""These functions of ComfyUI give every call with a mask to PyTorch's attention."""

ROUND = frozenset({SAGE_ALONE, "attention_sage", "attention3_sage", "attention_comfy_kitchen_int8"})
"""These functions multiply queries by keys in 8 bits, or fewer."""

NOT_WEIGHTED = (
    "proportional_attention is left out where another node or a launch option "
    "sets the attention function"
)


def masks_are_free(device: torch.device) -> bool:
    """Whether a mask costs nothing there."""
    return device.type == "cpu"


def accept_containers(override: Attention) -> Attention:
    """Let ComfyUI hand its containers to our override, which it does not tell its function then."""

    def attend(*args: Any, **kwargs: Any) -> Tensor:
        return override(comfy_attention.optimized_attention, *args, **kwargs)

    override.container_function = attend  # type: ignore[attr-defined]
    return override


@dataclass(frozen=True)
class Backend:
    """What computes attention: ComfyUI's function, or what another node put in its place.

    override: the other node's; None where there is none.
    """

    function: Attention
    override: Override | None

    def __call__(
        self,
        q: Tensor | Container,
        k: Tensor | Container,
        v: Tensor | Container,
        *args: Any,
        **kwargs: Any,
    ) -> Tensor:
        """As ComfyUI would compute it; its functions take containers wherever it has any."""
        if self.override is None:
            return self.function(q, k, v, *args, **kwargs)
        function = self.override.function
        if not isinstance(q, Tensor):
            if hasattr(function, "container_function"):
                out: Tensor = function.container_function(q, k, v, *args, **kwargs)
                return out
            q, k, v = (take(x) for x in (q, k, v))
        return function(self.function, q, k, v, *args, **kwargs)

    def choose_weighting(self, call: AttentionCall) -> Literal["mask", "channels", "kernel"] | None:
        """How keys are given their sizes; None where the function may accept neither.

        On a GPU a mask would push PyTorch off its fastest kernels. Where there is one anyway, or
        on a CPU, it costs nothing. In training it is there too: channels have no way back.
        """
        free = masks_are_free(call.q.device) or asks_for_gradients(call.q, call.k, call.v)
        if self.override and not self.override.is_backend:
            return "mask" if call.mask is not None or free else None
        name = self._find_name(call.mask is not None, call.options)
        if name in TAKE_MASKS_FREELY:
            return "mask"
        unmasked = name == "attention_pytorch" and call.mask is None
        given = call.q, call.k, call.v, None, call.scale
        if unmasked and find_form("attention.attend_weighed", call.q.device, *given):
            return "kernel"
        fits = count_channels(call.q.shape[-1]) <= MOST_CHANNELS
        if name in TAKE_MASKS and (call.mask is not None or free):
            return "mask"
        if name in TAKE_CHANNELS and fits:
            return "channels"
        return "mask" if name in TAKE_MASKS - KEEP_TO_FLASH else None

    def add_speed(self, layer: Layer, options: Mapping[str, Any]) -> Layer:
        """The layer, which knows how fast it is in this backend, and whether that rounds.

        options: of its calls.
        """
        name = self._find_name(layer.masked, options)
        speed = find_speed(name, layer.device, layer.dtype, layer.head_channels)
        return replace(layer, backend=speed, precision=self.find_precision(options))

    def find_precision(self, options: Mapping[str, Any]) -> Precision:
        """That of local windows beside it. options: of a call; some models ask to be exact."""
        is_allowed = options.get("low_precision_attention") is not False
        return "int8" if is_allowed and self._find_name(False, options) in ROUND else "exact"

    def _find_name(self, masked: bool, options: Mapping[str, Any]) -> str:
        """Of the function of ComfyUI that computes a call, or that takes the same as an override.

        Some of ComfyUI's leave calls to PyTorch's.
        """
        name = self.override.like if self.override else getattr(self.function, "__name__", "")
        handed_on = masked and name in HAND_MASKS_ON
        if name == "attention_sage":
            # An older ComfyUI, which does not ask, gives it every mask.
            takes_masks = getattr(comfy_attention, "SAGE_ATTENTION_SUPPORTS_MASK", True)
            precise = options.get("low_precision_attention") is False
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
            return call.shape_output(attend_weighed(call.q, call.k, call.v, sizes, call.scale))
        if weighting == "mask":
            mask = add_sizes_to_mask(call.mask, sizes, call.q.dtype)
            return replace(call, mask=mask).run(self)
        if weighting == "channels":
            channels = call.q.shape[-1]
            call = add_channels(call, sizes)  # the narrower tensors are freed here
            return cut_channels(call.run(self), call.heads, channels)
        report.say(None, NOT_WEIGHTED)
        return call.run(self)


def add_channels(call: AttentionCall, sizes: Tensor) -> AttentionCall:
    """A call with extra channels of queries and keys, which do what a mask of log s does."""
    options = {name: value for name, value in call.options.items() if name != "scale"}
    q, k, v = add_size_channels(call.q, call.k, call.v, sizes, call.scale)
    return replace(call, q=q, k=k, v=v, options=options)


def cut_channels(out: Tensor, heads: int, channels: int) -> Tensor:
    """The first channels of each head alone. out: (B, N, H·D') or (B, H, N, D')."""
    if out.ndim == 4:
        return out[..., :channels]
    apart = rearrange(out, "b n (h d) -> b n h d", h=heads)
    return apart[..., :channels].flatten(2)
