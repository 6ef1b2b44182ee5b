"""How many tokens UNets give to attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from comfy.model_patcher import ModelPatcher


class AttentionLog:
    """Lengths of queries and keys that reached ComfyUI's attention function, in order."""

    def __init__(self) -> None:
        self.lengths: list[tuple[int, int]] = []

    def watch(self, model: ModelPatcher) -> ModelPatcher:
        """A clone whose attention calls are noted; the numbers are not touched."""

        def override(attention: Callable, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
            self.lengths.append((q.shape[1], k.shape[1]))
            assert v.shape[1] == k.shape[1]
            return attention(q, k, v, *args, **kwargs)

        clone = model.clone()
        clone.model_options["transformer_options"]["optimized_attention_override"] = override
        return clone
