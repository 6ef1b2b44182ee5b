"""What models ask of attention and what reaches the kernel, noted where other nodes sit too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from einops import rearrange
from torch import Tensor

OVERRIDE = "optimized_attention_override"


@dataclass(frozen=True, eq=False)
class RecordedCall:
    """q, out: (B, H, Nq, D). k, v: (B, G, Nk, D), G being H or fewer. mask: as it was given.

    block: (kind, number) as far as the model tells which block is running, else None. scale: of the
    scores, None where the function has to find it.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    block: tuple[str, int] | None
    scale: float | None = None
    out: Tensor | None = None

    @classmethod
    def copy_arguments(
        cls, q: Tensor, k: Tensor, v: Tensor, heads: int, mask: Tensor | None = None, **options: Any
    ) -> RecordedCall:
        """From the arguments of ComfyUI's functions; copied, for models write in place."""
        if not options.get("skip_reshape"):
            channels = q.shape[-1] // heads
            q, k, v = (
                rearrange(x.flatten(2), "b n (h d) -> b h n d", d=channels) for x in (q, k, v)
            )
        state = options.get("transformer_options") or {}
        number = state.get("block_index")
        return cls(
            q.clone(),
            k.clone(),
            v.clone(),
            mask=None if mask is None else mask.clone(),
            block=None if number is None else (state.get("block_type", ""), number),
            scale=options.get("scale"),
        )

    def with_out(self, out: Tensor) -> RecordedCall:
        """out: (B, H, Nq, D) or (B, Nq, H·D), as the caller wanted it."""
        if out.ndim == 3:
            out = rearrange(out, "b n (h d) -> b h n d", h=self.q.shape[1])
        return replace(self, out=out.clone())

    @property
    def lengths(self) -> tuple[int, int]:
        """(Nq, Nk)"""
        return self.q.shape[2], self.k.shape[2]


@dataclass
class AttentionRecord:
    """Call by call: what a model asked for, and what the kernel got."""

    asked: list[RecordedCall] = field(default_factory=list)
    reached: list[RecordedCall] = field(default_factory=list)

    def watch(self, model: ModelPatcher) -> ModelPatcher:
        """A clone that notes; to be put last, as a node that keeps the override it finds."""
        clone = model.clone()
        clone.add_wrapper_with_key(WrappersMP.APPLY_MODEL, "attention_record", self._wrap)
        return clone

    def _wrap(
        self,
        executor: WrapperExecutor,
        x: Tensor,
        t: Tensor,
        c_concat: Tensor | None,
        c_crossattn: Tensor | None,
        control: Any,
        transformer_options: dict[str, Any],
        **kwargs: Any,
    ) -> Tensor:
        found = transformer_options.get(OVERRIDE)

        def override(attention: Callable[..., Any], *args: Any, **options: Any) -> Any:
            @wraps(attention)  # our override knows what functions can do by their names
            def kernel(*args: Any, **options: Any) -> Any:
                call = RecordedCall.copy_arguments(*args, **options)
                out = attention(*args, **options)
                self.reached.append(call.with_out(out))
                return out

            call = RecordedCall.copy_arguments(*args, **options)
            out = found(kernel, *args, **options) if found else kernel(*args, **options)
            self.asked.append(call.with_out(out))
            return out

        options = {**transformer_options, OVERRIDE: override}
        return executor(x, t, c_concat, c_crossattn, control, options, **kwargs)
