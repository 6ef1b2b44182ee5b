"""The first model call of a sampling run, once on the CPU and once on a real GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from comfy.model_patcher import ModelPatcher
from token_merge.tome_core.faster_forms import FORMS
from torch import Tensor
from torch.utils._pytree import tree_map

from .gpu_attention import take_pytorch_attention
from .other_device import OURS
from .other_device_run import watch

GPU = torch.device("cuda", 0)


@dataclass(frozen=True)
class BothResults:
    """outputs: of the CPU and of the GPU. waits: where our code made the CPU wait for the GPU."""

    outputs: tuple[Tensor, Tensor]
    waits: tuple[str, ...]


def run_on_cpu_and_gpu(
    model: ModelPatcher,
    sample: Callable[[ModelPatcher], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> BothResults:
    """``sample`` is given a clone of ``model`` and samples at least one step with it."""
    found: list[BothResults] = []

    def call_twice(apply_model: Callable[..., Tensor], call: dict[str, Any]) -> Tensor:
        here: Tensor = apply_model(call["input"], call["timestep"], **call["c"])
        if not found:
            there, waits = _call_on_gpu(apply_model, call)
            found.append(BothResults((here, there), waits))
        return here

    for form in FORMS.values():
        form.why_unavailable(GPU)  # what is done once in a process makes no call wait then
    take_pytorch_attention(monkeypatch)
    # Else the GPU rounds single precision to 10 bits in convolutions.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    sample(watch(model, call_twice, monkeypatch))
    return found[0]


def _call_on_gpu(apply_model: Any, call: dict[str, Any]) -> tuple[Tensor, tuple[str, ...]]:
    """The result, back on the CPU, and where ours waited."""
    options = call["c"]["transformer_options"]
    model = apply_model.__self__.to(GPU)
    tensors = {name: value for name, value in call["c"].items() if name != "transformer_options"}
    moved = tree_map(_move, (call["input"], call["timestep"], tensors))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            out: Tensor = model.apply_model(
                moved[0], moved[1], **moved[2], transformer_options=options
            )
        finally:
            torch.cuda.set_sync_debug_mode("default")
            model.to("cpu")
    ours = (each for each in seen if each.filename.startswith(OURS))
    waits = (each for each in ours if "synchronizing" in str(each.message))
    return out.cpu(), tuple(f"{each.filename}:{each.lineno}" for each in waits)


def _move(value: Any) -> Any:
    return value.to(GPU) if isinstance(value, Tensor) else value
