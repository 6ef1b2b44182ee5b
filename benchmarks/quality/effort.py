"""What a run asks of a model: how many rows it computes, how many pairs its attention compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from token_merge.nodes.hooks.run.state import KEY
from torch import Tensor

from ..attention_watch import find_tokens_dim, watch_attention

PROMPT_TOKENS = 77
PAIRS = "benchmark_pairs"
"""In the transformer_options of an attention call that a rival computed: pairs of one head and row.
"""


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


class EffortWatch:
    """Counts what one model does, from when it is attached."""

    def __init__(self) -> None:
        self.effort = Effort()

    def attach(self, model: ModelPatcher) -> ModelPatcher:
        """A clone that is counted. To be put last, as it sees what other nodes let through."""
        clone = watch_attention(model, self._count_pairs, self._count_own)
        key = "benchmark_effort"
        clone.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, key, self._count_rows)
        return clone

    def _count_rows(
        self, executor: WrapperExecutor, x: Tensor, *args: Any, **kwargs: Any
    ) -> Tensor:
        self.effort += Effort(rows=len(x))
        return executor(x, *args, **kwargs)

    def _count_pairs(self, q: Tensor, k: Tensor, options: Mapping[str, Any]) -> None:
        """Of one call of ComfyUI's attention function; cross-attention to the prompt has none.

        Where there are more rows of queries than of keys, as with ComfyUI's HyperTile, the function
        deals out the keys among them.
        """
        dim = find_tokens_dim(options)
        if k.shape[dim] != PROMPT_TOKENS:
            self.effort += Effort(pairs=k.shape[0] * q.shape[dim] * k.shape[dim])

    def _count_own(self, q: Tensor, k: Tensor, *args: Any, **options: Any) -> None:
        """Of one call that was computed without ComfyUI's function: what a rival or our node's
        report says of it.
        """
        dim = find_tokens_dim(options)
        state = options["transformer_options"]
        if PAIRS in state:
            pairs = state.pop(PAIRS)
            if k.shape[dim] != PROMPT_TOKENS:
                self.effort += Effort(pairs=q.shape[0] * pairs)
            return
        run = state[KEY].run
        reduced = run.report.reduced.values()
        keys = {each.tokens: each.keys for counts in reduced for each in counts}
        self.effort += Effort(pairs=q.shape[0] * q.shape[dim] * keys[q.shape[dim]])
