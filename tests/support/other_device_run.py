"""The first model call of a sampling run, once as it is and once on another device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import comfy.ldm.modules.attention as attention
import pytest
import torch
from comfy.model_patcher import ModelPatcher
from token_merge.tome_core import layer as payoff
from token_merge.tome_core.windows import planning as window_planning
from torch import Tensor

from .operation_record import Operation, OperationRecord
from .other_device import Crossing, OtherDevice, move, moved


@dataclass(frozen=True)
class TwoDevices:
    """outputs: of the CPU and of the other device. crossings: of our code, on the other device."""

    outputs: tuple[Tensor, Tensor]
    crossings: tuple[Crossing, ...]


def run_on_both(
    model: ModelPatcher,
    sample: Callable[[ModelPatcher], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> TwoDevices:
    """``sample`` is given a clone of ``model`` and samples at least one step with it."""
    found: list[TwoDevices] = []

    def call_twice(apply_model: Callable[..., Tensor], call: dict[str, Any]) -> Tensor:
        here: Tensor = apply_model(call["input"], call["timestep"], **call["c"])
        if not found:
            device = OtherDevice()
            there = call_on(device, apply_model, call)
            found.append(TwoDevices((here, there.held), tuple(device.crossings)))
        return here

    sample(watch(model, call_twice, monkeypatch))
    return found[0]


def put_on_other_device(model: ModelPatcher, monkeypatch: pytest.MonkeyPatch) -> ModelPatcher:
    """A clone whose calls are all computed on the other device."""

    def call_there(apply_model: Callable[..., Tensor], call: dict[str, Any]) -> Any:
        return call_on(OtherDevice(), apply_model, call).held

    return watch(model, call_there, monkeypatch)


def record_operations(
    model: ModelPatcher,
    sample: Callable[[ModelPatcher], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> list[list[Operation]]:
    """What our code asks another device for in each call of the model, see ``run_on_both``."""
    found: list[list[Operation]] = []

    def call_twice(apply_model: Callable[..., Tensor], call: dict[str, Any]) -> Tensor:
        device = OperationRecord()
        call_on(device, apply_model, call)
        found.append(device.operations)
        here: Tensor = apply_model(call["input"], call["timestep"], **call["c"])
        return here

    sample(watch(model, call_twice, monkeypatch))
    return found


def watch(
    model: ModelPatcher, call: Callable[..., Tensor], monkeypatch: pytest.MonkeyPatch
) -> ModelPatcher:
    tell_free_memory_of_both(monkeypatch)
    reduce_few_tokens(monkeypatch)
    watched = model.clone()
    watched.set_model_unet_function_wrapper(call)
    return watched


def reduce_few_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU, too: the models here are small."""
    monkeypatch.setattr(window_planning, "LEAST_FOR_WINDOWS", {})
    monkeypatch.setattr(payoff, "LEAST_FLOPS", {})
    monkeypatch.setattr(payoff, "PAIR_TIMES", dict.fromkeys(payoff.PAIR_TIMES, 0.0))


def call_on(device: OtherDevice, apply_model: Any, call: dict[str, Any]) -> Any:
    """The call's result, computed on ``device``. apply_model: the method of the model."""
    tensors = {k: v for k, v in call["c"].items() if k != "transformer_options"}
    options = call["c"]["transformer_options"]
    with moved(apply_model.__self__), device:
        return apply_model(
            move(call["input"]),
            move(call["timestep"]),
            **move(tensors),
            transformer_options=options,
        )


ONE_READ = [("wait", "__float__")]
"""This is a read of sigma, in each model call of a run of one step."""


def check_stays(both: TwoDevices, tolerance: float = 1e-4) -> None:
    """Nothing crosses but the one read, and both devices give the same."""
    assert [(each.kind, each.operation) for each in both.crossings] == ONE_READ, both.crossings
    here, there = both.outputs
    torch.testing.assert_close(there, here, rtol=tolerance, atol=tolerance)


def tell_free_memory_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """ComfyUI asks the GPU how much memory is free, to choose how much it computes at once."""
    monkeypatch.setattr(attention.model_management, "get_free_memory", _tell_free_memory)


def _tell_free_memory(device: Any = None, torch_free_too: bool = False) -> Any:
    return (2**30, 2**30) if torch_free_too else 2**30
