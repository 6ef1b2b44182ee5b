"""What a command is doing and for how long: one line on a terminal, a few lines elsewhere.

Only the standard library is used here, since nothing else is there before the sandbox is built.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType
from typing import TextIO

SECONDS_ON_A_TERMINAL = 1
SECONDS_ELSEWHERE = 4


class Progress:
    """Says what is being done until its ``with`` block ends.

    On a terminal there is one line. It is rewritten in place at every change and every second, and
    it is gone at the end. Elsewhere, as in the log of a build server, every stage is a line of its
    own, and a stage that takes long says every few seconds where it is.
    """

    def __init__(self, stage: str, stream: TextIO | None = None) -> None:
        """stream: where to write; by default what is standard output at this moment."""
        self._stream = stream or sys.stdout
        self._in_place = self._stream.isatty()
        self._stage = stage
        self._detail = ""
        self._width = 0  # of the line that stands on the terminal
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Progress:
        self.stage(self._stage)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self._in_place:
            self._write("\r" + " " * self._width + "\r")

    def stage(self, text: str) -> None:
        """Something else begins."""
        self._stage, self._detail = text, ""
        if self._in_place:
            self.show()
        else:
            self._write(f"{_printable(text)}\n")

    def detail(self, text: str) -> None:
        """What the stage has come to; only a terminal shows it at once."""
        self._detail = text
        if self._in_place:
            self.show()

    def show(self) -> None:
        """Write the stage, its detail and the seconds since the beginning."""
        seconds = f" ({time.monotonic() - self._start:.0f} s)"
        text = _printable(f"{self._stage}: {self._detail}" if self._detail else self._stage)
        if not self._in_place:
            self._write(f"  {text}{seconds}\n")
            return
        # A line as wide as the terminal would already break; what a longer one left is overwritten.
        most = shutil.get_terminal_size().columns - 1
        line = text[: max(most - len(seconds), 0)] + seconds
        with self._lock:
            self._put("\r" + line.ljust(self._width))
            self._width = len(line)

    def _go_on(self) -> None:
        pause = SECONDS_ON_A_TERMINAL if self._in_place else SECONDS_ELSEWHERE
        while not self._ended.wait(pause):
            self.show()

    def _write(self, text: str) -> None:
        with self._lock:
            self._put(text)

    def _put(self, text: str) -> None:
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(text.encode(encoding, "replace").decode(encoding))
        self._stream.flush()


def _printable(text: str) -> str:
    """Without characters that would move the cursor."""
    return "".join(letter for letter in text if letter.isprintable())
