"""One line that is rewritten on a terminal; plain lines elsewhere."""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

import pytest

from devtools import progress
from devtools.progress import Progress

COLUMNS = 40
MARK = "\0"


@dataclass
class Terminal:
    """stream: to write to, as a program does. descriptor: where it arrives."""

    stream: TextIO
    descriptor: int

    def read(self) -> str:
        """What was written since the last time; a terminal may hand it on piece by piece."""
        self.stream.write(MARK)
        self.stream.flush()
        written = ""
        while not written.endswith(MARK):
            written += os.read(self.descriptor, 65536).decode()
        return written.removesuffix(MARK)


@pytest.fixture
def terminal(monkeypatch) -> Iterator[Terminal]:
    """A real one of the operating system's, with 40 columns."""
    pty = pytest.importorskip("pty")
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as stream:
        yield Terminal(stream, ours)
    os.close(ours)


@pytest.fixture
def on_changes_alone(monkeypatch) -> None:
    """Nothing is written because time passes."""
    monkeypatch.setattr(progress, "SECONDS_ON_A_TERMINAL", None)
    monkeypatch.setattr(progress, "SECONDS_ELSEWHERE", None)


def shown(written: str) -> str:
    """The one line that a terminal shows after this."""
    line = ""
    for part in written.split("\r"):
        line = part + line[len(part) :]
    return re.sub(r"\(\d+ s\)", "(.. s)", line.rstrip())


def test_a_terminal_shows_one_line_that_is_rewritten(terminal, on_changes_alone):
    with Progress("Creating", terminal.stream) as line:
        written = terminal.read()
        assert shown(written) == "Creating (.. s)"
        for stage, detail in (
            ("Installing", "torch 2.13"),
            ("Installing", "rich"),
            ("Try", ""),
        ):
            line.stage(stage)
            line.detail(detail)
            written += terminal.read()
            assert shown(written) == (f"{stage}: {detail}" if detail else stage) + " (.. s)"
    written += terminal.read()
    assert shown(written) == ""
    assert "\n" not in written


def test_a_line_never_breaks(terminal, on_changes_alone):
    with Progress("A long stage " * 10, terminal.stream):
        written = terminal.read()
    assert max(len(line) for line in written.split("\r")) < COLUMNS
    assert shown(written).endswith(" (.. s)")


class Watched(io.StringIO):
    """Tells when it was written to three times."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal
        self.third = threading.Event()
        self.count = 0

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, text: str) -> int:
        self.count += 1
        if self.count == 3:
            self.third.set()
        return super().write(text)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_long_stage_is_shown_again_though_nothing_changes(is_terminal, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_ON_A_TERMINAL", 0)
    monkeypatch.setattr(progress, "SECONDS_ELSEWHERE", 0)
    stream = Watched(is_terminal)
    with Progress("Creating", stream):
        stream.third.wait()
    assert stream.getvalue().count("Creating") >= 3


def test_elsewhere_every_stage_is_a_line_and_details_are_not(on_changes_alone):
    log = io.StringIO()
    with Progress("Creating", log) as line:
        line.stage("Installing")
        line.detail("torch")
        line.detail("rich")
    assert log.getvalue() == "Creating\nInstalling\n"


def test_elsewhere_a_long_stage_says_where_it_is(on_changes_alone):
    log = io.StringIO()
    with Progress("Creating", log) as line:
        line.stage("Installing")
        line.detail("torch")
        line.show()
    assert re.sub(r"\d+ s", ".. s", log.getvalue()).endswith("  Installing: torch (.. s)\n")
    assert "\r" not in log.getvalue()


def test_what_an_encoding_lacks_is_replaced():
    log = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with Progress("Creating\x1b in /Büro", log):
        pass
    assert log.buffer.getvalue().startswith(b"Creating in /B?ro\n")  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_leaves_an_empty_line_on_the_terminal(error, terminal, on_changes_alone):
    with pytest.raises(error), Progress("Creating", terminal.stream):
        raise error
    assert shown(terminal.read()) == ""
