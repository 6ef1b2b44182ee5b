"""What hooks into attention when the model is called."""

from __future__ import annotations

from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP

from .attention_record import OVERRIDE


def watch_installed(model: ModelPatcher) -> tuple[ModelPatcher, list[set[str]]]:
    """A clone, and for each of its calls the names of the patches and of the override.

    No name has more than one patch.
    """
    seen: list[set[str]] = []

    def watch(executor: WrapperExecutor, *args: Any, **kwargs: Any) -> Any:
        options = kwargs.get("transformer_options") or args[-1]
        patches = options.get("patches", {})
        assert all(len(patch) == 1 for patch in patches.values())
        replaced = options.get("patches_replace", {})
        seen.append({*patches, *replaced} | ({OVERRIDE} & {*options}))
        return executor(*args, **kwargs)

    clone = model.clone()
    clone.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "watch", watch)
    return clone, seen
