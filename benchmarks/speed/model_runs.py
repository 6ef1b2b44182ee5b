"""How a variant of a model is measured: sampling with it, watched once and then timed."""

from __future__ import annotations

from comfy.model_patcher import ModelPatcher

from .memory import peak_memory
from .sampling import Request, run, run_replayed, with_lengths_noted
from .session import Runner
from .variants import Variant

REPLAYS = 10


def make_runner(model: ModelPatcher, variant: Variant, request: Request, calls: int = 1) -> Runner:
    """Measures ``variant`` of ``model``, which is made once and used for every round.

    calls: in one call of the model, which the seconds are divided by.
    """
    patched, measured = variant.patch(model), variant.start()

    def inspect() -> float:
        watched, lengths = with_lengths_noted(patched, request)
        with peak_memory(model.load_device) as peak:
            seconds = run(watched, request)
        measured.peak_bytes = peak.bytes
        measured.lengths = [[*sizes, lengths[sizes]] for sizes in sorted(lengths, reverse=True)]
        return seconds / calls

    def again(number: int) -> float:
        return run(patched, request, number) / calls

    return Runner(measured, inspect, again)


def make_replaying_runner(model: ModelPatcher, variant: Variant, request: Request) -> Runner:
    """The same of calls that are replayed as CUDA graphs: a GPU never waits for the processor."""
    patched = variant.patch(model)
    replays = REPLAYS if model.load_device.type == "cuda" else 1

    def inspect() -> float:
        """As every run: it compiles kernels, which a capture must not."""
        return run(patched, request)

    def again(number: int) -> float:
        return run_replayed(patched, request, number, replays)

    return Runner(variant.start(), inspect, again)
