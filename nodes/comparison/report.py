"""A comparison in words, for the text on the node and for the picture of the table alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .difference import is_identical, measure_psnr, split_streams
from .runs import Comparison
from .speed import Speed, is_timed, measure_mean_step, measure_median_step
from .surroundings import Fact

CLEAR = 0.02
"""A speed-up nearer to 1 than this cannot be told from chance by two rounds."""
STEADY = 1.2
"""Rounds whose speed-ups differ by more than this factor do not agree."""
HOW = "each model twice in turn, after a warm-up; without the first step of each run"


@dataclass(frozen=True)
class Figure:
    """One line of measured values; texts may be empty. change: of patched against plain."""

    name: str
    plain: str
    patched: str
    change: str


@dataclass(frozen=True)
class Report:
    """All that is said of a comparison.

    Args:
        verdict: the speed-up in one sentence.
        figures: what was measured.
        nodes: pairs of one of our nodes and what it did.
        facts: what was compared, and on which machine.
    """

    verdict: str
    figures: tuple[Figure, ...]
    nodes: tuple[Fact, ...]
    facts: tuple[Fact, ...]

    def to_text(self) -> str:
        """One line for each; the verdict first, since a node shows few lines at once."""
        figures = ((figure.name, _join(figure)) for figure in self.figures)
        pairs = (*figures, *self.nodes, *self.facts)
        return "\n".join([self.verdict, *(f"{name}: {text}" for name, text in pairs)])


def write_report(comparison: Comparison, facts: tuple[Fact, ...]) -> Report:
    return Report(
        verdict=_judge(comparison),
        figures=(
            *_describe_times(comparison),
            _describe_difference(comparison),
            _describe_memory(comparison),
        ),
        nodes=_describe_nodes(comparison),
        facts=(("Measured", HOW), *facts),
    )


def _join(figure: Figure) -> str:
    sides = (("plain", figure.plain), ("patched", figure.patched), ("", figure.change))
    return ", ".join(f"{name} {text}".strip() for name, text in sides if text)


def _judge(comparison: Comparison) -> str:
    if not is_timed(comparison):
        return "Speed was not measured: at least 2 steps are needed"
    speed = measure_mean_step(comparison)
    verdict = f"{_compare(speed)}: {_describe_speedup(speed)}"
    if speed.highest > STEADY * speed.lowest:
        verdict += ". The two rounds do not agree: was the machine busy with something else?"
    return verdict


def _compare(speed: Speed) -> str:
    if speed.highest < 1 - CLEAR:
        return "Slower than plain"
    if speed.lowest > 1 + CLEAR:
        return "Faster than plain"
    return "No clear difference in speed"


def _describe_times(comparison: Comparison) -> tuple[Figure, ...]:
    if not is_timed(comparison):
        return ()
    mean, middle = measure_mean_step(comparison), measure_median_step(comparison)
    return (_describe_time("Seconds per step", mean), _describe_time("Median step", middle))


def _describe_time(name: str, speed: Speed) -> Figure:
    return Figure(name, f"{speed.plain:.3g} s", f"{speed.patched:.3g} s", _describe_speedup(speed))


def _describe_speedup(speed: Speed) -> str:
    return f"{speed.speedup:.2f}x ({speed.lowest:.2f} to {speed.highest:.2f})"


def _describe_difference(comparison: Comparison) -> Figure:
    plain, patched = (
        split_streams(model.rounds[0].latent["samples"])
        for model in (comparison.plain, comparison.patched)
    )
    if [each.shape for each in plain] != [each.shape for each in patched]:
        text = "not comparable, the sizes differ"
    elif all(map(is_identical, patched, plain)):
        text = "identical"
    else:
        text = " and ".join(map(_describe_psnr, map(measure_psnr, patched, plain)))
    return Figure("Difference of the latents", "", "", text)


def _describe_psnr(psnr: float) -> str:
    if math.isnan(psnr):
        return "not comparable, some values are not numbers"
    return "identical" if math.isinf(psnr) else f"PSNR {psnr:.1f} dB"


def _describe_memory(comparison: Comparison) -> Figure:
    plain, patched = (
        [run.peak_memory for run in model.rounds if run.peak_memory is not None]
        for model in (comparison.plain, comparison.patched)
    )
    if not (plain and patched):
        return Figure("Peak memory", "-", "-", "not measured on this device")
    before, after = max(plain), max(patched)
    return Figure("Peak memory", _gibibytes(before), _gibibytes(after), f"{after / before:.0%}")


def _gibibytes(count: int) -> str:
    return f"{count / 2**30:.2f} GiB"


def _describe_nodes(comparison: Comparison) -> tuple[Fact, ...]:
    absent = ("patched_model", "has none of the nodes of this pack at work")
    plain = tuple((f"{name} on the plain model", text) for name, text in comparison.plain.lines)
    return (comparison.patched.lines or (absent,)) + plain
