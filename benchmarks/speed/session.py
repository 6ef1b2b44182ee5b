"""One run of the benchmark: measures cases, shows progress, keeps what was measured so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .results import Case, Measured, Results


@dataclass(frozen=True)
class Runner:
    """How one variant of a case is measured.

    inspect: one run that fills in all of ``measured`` that is no time. again: one run of the
    given round. Both give seconds.
    """

    measured: Measured
    inspect: Callable[[], float]
    again: Callable[[int], float]


@dataclass
class Session:
    """Interleaves the runs of a case, round by round: A B C, C B A, A B C.

    So a machine that slows down, or what a run leaves in its caches, favours none.

    deadline: on ``time.monotonic``; no round starts that would not end before it.
    """

    results: Results
    out: Path
    console: Console
    deadline: float = float("inf")
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn())
        self.progress = Progress(*columns, TimeElapsedColumn(), console=self.console)

    def __enter__(self) -> Session:
        self.progress.start()
        # Goes on while models are built too, where no case is being measured.
        self.progress.add_task("all that is measured", total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.progress.stop()

    def measure(
        self, case: Case, runners: Sequence[Runner], rounds: int, *, warm_up: bool = True
    ) -> None:
        """Measure ``runners`` into ``case`` and keep it after every round.

        warm_up: the first round, which records memory and lengths too, is not counted. Where a
        call takes long, one call of the first variant is enough: it pays for what is done once in
        a process, and the recording costs all variants the same few milliseconds.
        """
        if self.is_late(0):
            self.console.print(f"{case.name}: left out, the time is up", highlight=False)
            return
        case.measured = [runner.measured for runner in runners]
        task = self.progress.add_task(case.name, total=len(runners) * (rounds + warm_up))
        if not warm_up:
            _measure_once(runners[0], 0, first=False, counted=False)
        for number in range(-warm_up, rounds):
            start = time.monotonic()
            first = number == -warm_up
            for runner in runners if number % 2 == 0 else runners[::-1]:
                self.progress.update(task, description=f"{case.name}: {runner.measured.name}")
                if not runner.measured.failed:
                    _measure_once(runner, number, first=first, counted=number >= 0)
                self.progress.advance(task)
            self.results.put(case)
            self.results.write(self.out)
            if self.is_late(time.monotonic() - start):
                break
        self.progress.update(task, visible=False)
        counted = max((len(one.seconds) for one in case.measured), default=0)
        self.console.print(f"{case.name}: {counted} of {rounds} rounds", highlight=False)

    def is_late(self, seconds: float) -> bool:
        """Whether what takes ``seconds`` would end after the deadline."""
        return time.monotonic() + seconds > self.deadline


def _measure_once(runner: Runner, number: int, *, first: bool, counted: bool) -> None:
    """A failure is a result: it is noted and the other variants go on."""
    try:
        seconds = runner.inspect() if first else runner.again(number)
    except (RuntimeError, NotImplementedError) as error:
        runner.measured.failed = str(error).splitlines()[0][:200]
        return
    if counted:
        runner.measured.seconds.append(seconds)
