"""Models as ComfyUI's TorchCompileModel compiles them, with backends that need no C++ compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from comfy.model_patcher import ModelPatcher
from comfy_api.torch_helpers import set_torch_compile_wrapper
from comfy_extras.nodes_torch_compile import skip_torch_compile_dict
from torch.fx import GraphModule


def compiled(model: ModelPatcher, backend: Any = "eager") -> ModelPatcher:
    """A clone, as TorchCompileModel gives it."""
    clone = model.clone()
    options = {"guard_filter_fn": skip_torch_compile_dict}
    set_torch_compile_wrapper(clone, backend=backend, options=options)
    return clone


class GraphCounter:
    """A backend that runs graphs as they are. runs: how many were run; one model call without a
    graph break is one graph.
    """

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, graph: GraphModule, *_: Any, **__: Any) -> Callable[..., Any]:
        def run(*inputs: Any) -> Any:
            self.runs += 1
            return graph.forward(*inputs)

        return run
