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
from .backend_speeds import PYTORCH, Function, find_function, find_speed
from .call import Attention, AttentionCall, Container, take
from .overrides import Override

MOST_FLASH_CHANNELS = 256
"""The flash kernels of PyTorch, FlashAttention and xFormers take heads of at most so many. With
more, FlashAttention refuses each call, of which ComfyUI warns each time."""

NOT_WEIGHED = (
    "proportional_attention is left out where another node or a launch option "
    "sets the attention function"
)


def masks_are_free(device: torch.device) -> bool:
    """Whether a mask costs nothing there."""
    return device.type == "cpu"


def accept_containers(override: Attention) -> Attention:
    """Let ComfyUI give its containers to our override.

    It does not pass its own function in that case, so this does.
    """

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
        """How keys get their sizes; None where the function may accept neither masks nor channels.

        On a GPU a mask keeps PyTorch from its fastest kernels. It costs nothing on a CPU, or where
        the call has a mask anyway.
        """
        free = masks_are_free(call.q.device)
        if self.override and not self.override.is_backend:
            return "mask" if call.mask is not None or free else None
        function = self._find_function(call.mask is not None, call.options)
        if function.mask == "free":
            return "mask"
        given = call.q, call.k, call.v, None, call.scale
        unmasked = function is PYTORCH and call.mask is None
        if unmasked and find_form("attention.attend_weighed", call.q.device, *given):
            return "kernel"
        if function.mask and (call.mask is not None or free):
            return "mask"
        if function.channels and count_channels(call.q.shape[-1]) <= MOST_FLASH_CHANNELS:
            return "channels"
        return "mask" if function.mask == "slow" else None

    def add_speed(self, layer: Layer, options: Mapping[str, Any]) -> Layer:
        """The layer, which knows how fast it is in this backend, and whether that rounds.

        options: of its calls.
        """
        function = self._find_function(layer.masked, options)
        speed = find_speed(function, layer.device, layer.dtype, layer.head_channels)
        return replace(layer, backend=speed, precision=self.find_precision(options))

    def find_precision(self, options: Mapping[str, Any]) -> Precision:
        """That of local windows beside it. options: of a call; some models ask to be exact."""
        is_allowed = options.get("low_precision_attention") is not False
        return "int8" if is_allowed and self._find_function(False, options).rounds else "exact"

    def _find_function(self, masked: bool, options: Mapping[str, Any]) -> Function:
        """What computes a call, as far as it is known: a function of ComfyUI, or what an override
        is like. Some of ComfyUI's leave calls to PyTorch's.
        """
        name = self.override.like if self.override else getattr(self.function, "__name__", "")
        function = find_function(name)
        handed_on = masked and function.hands_masks_on
        if name == "attention_sage":
            # An older ComfyUI, which does not ask, gives it every mask.
            takes_masks = getattr(comfy_attention, "SAGE_ATTENTION_SUPPORTS_MASK", True)
            precise = options.get("low_precision_attention") is False
            handed_on = precise or (masked and not takes_masks)
        return PYTORCH if handed_on else function

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
        report.say(None, NOT_WEIGHED)
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
