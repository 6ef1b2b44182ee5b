"""Runs pytest, and shows that something goes on before pytest says anything.

``tests/conftest.py`` imports ComfyUI, which takes seconds. pytest calls it before its own first
line, and keeps back whatever is written meanwhile.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from .progress import Progress


class LoadingLine:
    """A plugin: a line of progress while the first ``conftest.py`` files are imported."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self) -> Iterator[None]:
        """Before pytest takes standard output away, hence first; a copy of it stays ours."""
        with (
            open(os.dup(sys.stdout.fileno()), "w", encoding=sys.stdout.encoding) as stream,
            Progress("Importing ComfyUI and the nodes", stream),
        ):
            yield


if __name__ == "__main__":
    # The checkout's own folder, put there by `python -m`: our folder `nodes` would be found where
    # ComfyUI imports its own module of that name.
    del sys.path[0]
    sys.exit(pytest.main(sys.argv[1:], plugins=[LoadingLine()]))
