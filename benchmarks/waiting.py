"""Says what goes on while something takes long that shows no progress of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def waiting(console: Console, text: str) -> Iterator[None]:
    """On a terminal ``text`` and the time that has passed, until the ``with`` block ends.

    Elsewhere ``text`` alone, once.
    """
    if not console.is_terminal:
        console.print(text)
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(text, total=None)
        yield
