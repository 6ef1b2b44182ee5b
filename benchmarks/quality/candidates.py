"""Ways to merge that the nodes do not offer, measured to learn what to offer.

A slot of merged tokens stands for several, but softmax gives it the weight of one. Proportional
attention (ToMe, arXiv 2210.09461, eq. 1) adds the log of its size to its scores; ToMe for Stable
Diffusion and tomesd leave that out. And a mean of keys is no key that the model ever saw; the
slot's destination token is. The node has both, with means of queries and values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from comfy.model_patcher import ModelPatcher
from token_merge.tome_core import (
    Draws,
    LayerTokens,
    MergePlan,
    MergeSettings,
    Stream,
    TokenGrid,
    plan_layer,
)
from torch import Tensor

from ..settings import is_finest

FINEST = 1


@dataclass(frozen=True)
class Merging:
    """One way to merge in the finest layers.

    chosen_queries, chosen_keys, chosen_values: the slot's destination token instead of the mean of
    its tokens.
    sized: proportional attention, by a mask, so its speed says nothing.
    """

    settings: MergeSettings
    chosen_queries: bool = False
    chosen_keys: bool = False
    chosen_values: bool = False
    sized: bool = False

    def __call__(self, model: ModelPatcher, /, *, seed: int = 0) -> ModelPatcher:
        clone = model.clone()
        block = _Block(self, seed)
        clone.set_model_attn1_patch(block.merge)
        clone.set_model_attn1_output_patch(block.unmerge)
        if self.sized:
            clone.model_options["transformer_options"]["optimized_attention_override"] = (
                block.attend
            )
        return clone


@dataclass
class _Block:
    """plan, sizes: of the self-attention that runs, from its input patch to its output patch."""

    merging: Merging
    seed: int
    plan: MergePlan | None = None
    sizes: Tensor | None = None
    calls: count[int] = field(default_factory=count)

    def merge(
        self, n: Tensor, context: Tensor, value: Tensor, extra_options: dict[str, Any]
    ) -> tuple[Tensor, Tensor, Tensor]:
        if not is_finest(extra_options, FINEST):
            return n, context, value
        settings = self.merging.settings
        grid = TokenGrid.from_activations(extra_options["activations_shape"])
        draws = Draws(("candidates", self.seed, next(self.calls)), n.device)
        plan = plan_layer(settings, LayerTokens(Stream(grid), lambda: n, draws))
        assert isinstance(plan, MergePlan)
        mean = plan.merge(n)
        picked = plan.choose(n)
        queries, keys, values = n, context, value
        if settings.target != "keys and values":
            queries, self.plan = picked if self.merging.chosen_queries else mean, plan
        if settings.target != "queries":
            keys = picked if self.merging.chosen_keys else mean
            values = picked if self.merging.chosen_values else mean
            self.sizes = plan.sizes
        return queries, keys, values

    def attend(
        self, attention: Callable[..., Tensor], q: Tensor, k: Tensor, *args: Any, **kw: Any
    ) -> Tensor:
        sizes, self.sizes = self.sizes, None
        if sizes is not None:
            kw["mask"] = sizes.to(q).log()[:, None, :]  # (B, 1, M)
        return attention(q, k, *args, **kw)

    def unmerge(self, n: Tensor, extra_options: dict[str, Any]) -> Tensor:
        plan, self.plan = self.plan, None
        return plan.unmerge(n) if plan else n
