"""How a variant of a model is measured: sampling with it, watched once and then timed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from comfy.model_patcher import ModelPatcher

from .clocks import Clock, seconds_now
from .memory import peak_memory
from .results import Measured
from .sampling import Request, Timing, run, with_lengths_noted
from .session import Runner
from .variants import Variant


def make_runner(
    model: ModelPatcher,
    variant: Variant,
    request: Request,
    *,
    hooks: bool = True,
    clock: Clock = seconds_now,
) -> Runner:
    """Measures ``variant`` of ``model``; both are made once and used for every round."""
    patched, measured = variant.patch(model), begin(variant)

    def inspect() -> Timing:
        watched, lengths = with_lengths_noted(patched, request.rows) if hooks else (patched, {})
        with peak_memory(model.load_device) as peak:
            timing = run(watched, request, steps=variant.steps, hooks=hooks, clock=clock)
        measured.peak_bytes = peak.bytes
        calls = {sizes: count // variant.steps for sizes, count in lengths.items()}
        measured.lengths = [[*sizes, count] for sizes, count in sorted(calls.items())][::-1]
        return timing

    def again(number: int, hooks: bool = hooks) -> Timing:
        steps = variant.steps
        return run(patched, request, first=number, steps=steps, hooks=hooks, clock=clock)

    return time_hooks_apart(Runner(measured, inspect, again), model, partial(again, hooks=False))


def begin(variant: Variant) -> Measured:
    """Of ``variant``, without a number yet."""
    setting = variant.setting.name if variant.setting else None
    return Measured(variant.name, variant.kind, setting)


def with_peak_noted(
    model: ModelPatcher,
    measured: Measured,
    watched: Callable[[int], Timing],
    timed: Callable[[int], Timing],
) -> Runner:
    """The peak of memory is that of the first round.

    watched, timed: as ``Runner.again``, with and without the time in hooks.
    """

    def inspect() -> Timing:
        with peak_memory(model.load_device) as peak:
            timing = watched(0)
        measured.peak_bytes = peak.bytes
        return timing

    return time_hooks_apart(Runner(measured, inspect, watched), model, timed)


def time_hooks_apart(
    runner: Runner, model: ModelPatcher, without_hooks: Callable[[int], Timing]
) -> Runner:
    """On a GPU, the time in hooks is measured in the first round alone.

    To record it takes as long as some hooks do, and a GPU that waits for the processor shows it.

    without_hooks: as ``Runner.again``, and records nothing.
    """
    if model.load_device.type != "cuda":
        return runner

    def inspect() -> Timing:
        without_hooks(0)  # what is done once in a process is in no hook's time then
        timing = runner.inspect()
        if timing.hooks is not None:
            runner.measured.hook_seconds.append(timing.hooks)
        return timing

    return Runner(runner.measured, inspect, without_hooks)
