"""ComfyUI's own MultiGPU work units on a machine without a GPU.

The devices are the processor under two of its names, "cpu" and "cpu:1". PyTorch keeps no number of
a processor, so a tensor of the second is a tensor of the first: what is emulated is two devices
that share their memory. All else is ComfyUI's own: the clone with weights of its own, the node that
makes it, the thread for each device, and how prompts are dealt out to them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import get_ident
from typing import Any

import comfy.model_management
import pytest
import torch
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrappersMP
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from benchmarks.random_models import build_model, fill_weights

from .other_device import Crossing, OtherDevice
from .other_device_run import call_on, reduce_few_tokens, tell_free_memory_of_both
from .unet_sampling import forget_dead_models
from .unets import CONFIGS

FIRST, SECOND = torch.device("cpu"), torch.device("cpu", 1)


def have_two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """ComfyUI finds two devices. The test is skipped where it is too old to use both."""
    pytest.importorskip("comfy_extras.nodes_multigpu")

    def list_devices(exclude_current: bool = False) -> list[torch.device]:
        return [SECOND] if exclude_current else [FIRST, SECOND]

    monkeypatch.setattr(comfy.model_management, "get_all_torch_devices", list_devices)


def load(name: str) -> ModelPatcher:
    """A narrow model that can be loaded again for another device, as one of ComfyUI's loaders."""
    model = build_model(*CONFIGS[name], fill=partial(fill_weights, scale=0.5))
    model.cached_patcher_init = (load, (name,))
    return model


def split(model: ModelPatcher) -> ModelPatcher:
    """What ComfyUI's node MultiGPU CFG Split makes of it."""
    # Here and not above: older versions have none.
    from comfy_extras.nodes_multigpu import MultiGPUCFGSplitNode

    # ComfyUI 0.30.0 fails where a model that it loaded is gone: it looks for a clone to use again.
    forget_dead_models()
    on_two: ModelPatcher = MultiGPUCFGSplitNode.execute(model, 2).args[0]
    assert [each.load_device for each in on_two.get_additional_models_with_key("multigpu")] == [
        SECOND
    ]
    return on_two


@dataclass
class Calls:
    """devices: of each call of the model. threads: in which each module was called."""

    devices: list[torch.device] = field(default_factory=list)
    threads: dict[nn.Module, set[int]] = field(default_factory=lambda: defaultdict(set))

    @contextmanager
    def watch(self, model: ModelPatcher) -> Iterator[ModelPatcher]:
        """A clone whose calls are noted while it lasts."""
        clone = model.clone()
        clone.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "calls", self._note_call)
        hook = register_module_forward_pre_hook(self._note_module)
        try:
            yield clone
        finally:
            hook.remove()

    def _note_call(self, executor: Any, *args: Any, **kwargs: Any) -> Tensor:
        options = kwargs.get("transformer_options") or args[-1]
        self.devices.append(options["multigpu_thread_device"])
        return executor(*args, **kwargs)

    def _note_module(self, module: nn.Module, args: Any) -> None:
        self.threads[module].add(get_ident())


def compute_second_elsewhere(
    model: ModelPatcher, crossings: list[Crossing], monkeypatch: pytest.MonkeyPatch
) -> ModelPatcher:
    """A clone whose calls for the second device are made with tensors that say they are on a GPU.

    crossings: gets what our code would make that GPU wait for, or mixes with the first device.
    """

    def call_there(apply_model: Callable[..., Tensor], call: dict[str, Any]) -> Tensor:
        if call["c"]["transformer_options"]["multigpu_thread_device"] == FIRST:
            return apply_model(call["input"], call["timestep"], **call["c"])
        device = OtherDevice()
        out = call_on(device, apply_model, call)
        crossings.extend(device.crossings)
        held: Tensor = out.held
        return held

    tell_free_memory_of_both(monkeypatch)
    reduce_few_tokens(monkeypatch)
    clone = model.clone()
    clone.set_model_unet_function_wrapper(call_there)
    return clone
