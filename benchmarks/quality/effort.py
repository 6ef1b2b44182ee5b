"""What a run asks of a model: how many rows it computes, how many pairs its attention compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from token_merge.nodes.hooks.model_call import KEY
from torch import Tensor

OVERRIDE = "optimized_attention_override"
"""Where ComfyUI looks in transformer_options for another attention function."""


@dataclass(frozen=True)
class Effort:
    """Added over the calls of the model.

    rows: latents given to the network; guidance gives it two for each picture. pairs: queries
    times keys of self-attention, times the rows, of one head.
    """

    rows: int = 0
    pairs: int = 0

    def __add__(self, other: Effort) -> Effort:
        return Effort(self.rows + other.rows, self.pairs + other.pairs)


def count_pairs(prompt_tokens: int, q: Tensor, k: Tensor, options: Mapping[str, Any]) -> int:
    """Of one call of ComfyUI's attention function, 0 where it is cross-attention to the prompt.

    The one source of this number: attention that does not pass ComfyUI's function has to be counted
    elsewhere. options: its keyword arguments. q, k: (B, N, C), or (B, H, N, C) with
    ``skip_reshape``.
    """
    dim = 2 if options.get("skip_reshape") else 1
    keys = k.shape[dim]
    return 0 if keys == prompt_tokens else q.shape[0] * q.shape[dim] * keys


def count_reported_pairs(q: Tensor, *args: Any, **options: Any) -> int:
    """Of one call that our node computed by kernels of its own: what its report says of it."""
    dim = 2 if options.get("skip_reshape") else 1
    run = options["transformer_options"][KEY].run
    reports = run.report.nodes.values()
    keys = {tokens: keys for report in reports for tokens, _, keys in report.reduced}
    return q.shape[0] * q.shape[dim] * keys[q.shape[dim]]


class EffortWatch:
    """Counts what one model does, from when it is attached."""

    def __init__(self) -> None:
        self.effort = Effort()
        self._calls = 0

    def attach(self, model: ModelPatcher) -> ModelPatcher:
        """A clone that is counted. To be put last, as it sees what other nodes let through."""
        clone = model.clone()
        key = "benchmark_effort"
        clone.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, key, self._count_rows)
        clone.add_wrapper_with_key(WrappersMP.APPLY_MODEL, key, self._count_attention)
        return clone

    def _count_rows(
        self, executor: WrapperExecutor, x: Tensor, *args: Any, **kwargs: Any
    ) -> Tensor:
        self.effort += Effort(rows=len(x))
        return executor(x, *args, **kwargs)

    def _count_attention(
        self,
        executor: WrapperExecutor,
        x: Tensor,
        t: Tensor,
        c_concat: Tensor | None,
        c_crossattn: Tensor,
        control: Any,
        transformer_options: dict[str, Any],
        **kwargs: Any,
    ) -> Tensor:
        found = transformer_options.get(OVERRIDE)
        prompt_tokens = c_crossattn.shape[1]

        def attend(attention: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
            @wraps(attention)  # overrides tell by its name what it can do
            def counted(q: Tensor, k: Tensor, *args: Any, **kwargs: Any) -> Tensor:
                self._calls += 1
                self.effort += Effort(pairs=count_pairs(prompt_tokens, q, k, kwargs))
                return attention(q, k, *args, **kwargs)

            if found is None:
                return counted(*args, **kwargs)
            before = self._calls
            out = found(counted, *args, **kwargs)
            if self._calls == before:
                self.effort += Effort(pairs=count_reported_pairs(*args, **kwargs))
            return out

        options = {**transformer_options, OVERRIDE: attend}
        return executor(x, t, c_concat, c_crossattn, control, options, **kwargs)
