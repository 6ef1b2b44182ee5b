"""Both models sample in turn: plain, patched, patched, plain."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from comfy.model_patcher import ModelPatcher
from latent_preview import prepare_callback

from ..hooks.registry import listen
from ..hooks.run_report import RunSummary
from .memory import forget_peak, read_peak
from .sampling import Latent, Sampling, StepCallback
from .step_watch import StepWatch

WARM_UP_STEPS = 2
"""Of a whole schedule, so that the second one is in its middle: a node may act in a part of it."""


@dataclass(frozen=True)
class TimedRun:
    """One run that counts.

    Args:
        latent: the result.
        seconds: of each step but the first.
        peak_memory: in bytes; None on a device where it is not measured.
    """

    latent: Latent
    seconds: tuple[float, ...]
    peak_memory: int | None


@dataclass(frozen=True)
class ModelRuns:
    """What one model gave.

    Args:
        rounds: its runs in the order of the rounds.
        lines: pairs of one of our nodes on the model, and what it did in the last run.
    """

    rounds: tuple[TimedRun, TimedRun]
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Comparison:
    plain: ModelRuns
    patched: ModelRuns


def compare(plain: ModelPatcher, patched: ModelPatcher, sampling: Sampling) -> Comparison:
    """Warm up both models, then sample with plain, patched, patched, plain.

    In this order neither gains from what changes in the meantime, such as a processor that gets
    hot. The models are not changed, and neither is the global random state.
    """
    warm_up = replace(sampling, steps=min(WARM_UP_STEPS, sampling.steps))
    course = _Course(total=2 * warm_up.steps + 4 * sampling.steps)
    one, other = (_Contender.prepare(model, course) for model in (plain, patched))
    with torch.random.fork_rng(_random_devices(plain.load_device)):
        one.sample(warm_up)
        other.sample(warm_up)
        first_plain, first_patched = one.sample(sampling), other.sample(sampling)
        second_patched, second_plain = other.sample(sampling), one.sample(sampling)
    return Comparison(
        plain=ModelRuns((first_plain, second_plain), one.lines()),
        patched=ModelRuns((first_patched, second_patched), other.lines()),
    )


def _random_devices(device: torch.device) -> list[int]:
    """Whose random state a seed sets, beside the processor's."""
    return list(range(torch.cuda.device_count())) if device.type == "cuda" else []


@dataclass
class _Course:
    """How many steps of all runs there are, and how many are done."""

    total: int
    done: int = 0


@dataclass(frozen=True)
class _Contender:
    """A model that tells what our nodes on it do. show: ComfyUI's own callback."""

    model: ModelPatcher
    course: _Course
    show: StepCallback
    summaries: list[RunSummary] = field(default_factory=list)

    @classmethod
    def prepare(cls, model: ModelPatcher, course: _Course) -> _Contender:
        summaries: list[RunSummary] = []
        show = prepare_callback(model, course.total)
        return cls(listen(model, summaries.append), course, show, summaries)

    def sample(self, sampling: Sampling) -> TimedRun:
        device = self.model.load_device
        watch = StepWatch(self.show, self.course.done, sampling.steps, self.course.total)
        forget_peak(device)
        latent = sampling.run(self.model, watch)
        self.course.done += sampling.steps
        return TimedRun(latent, tuple(watch.seconds), read_peak(device))

    def lines(self) -> tuple[tuple[str, str], ...]:
        return self.summaries[-1].lines if self.summaries else ()
