"""Runs a packed folder as on a GPU machine, but on this processor and as a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_packed(folder: Path, *arguments: str) -> None:
    """From beside the folder, which has to bring its own ComfyUI."""
    environment = {**os.environ, "PYTHON": sys.executable}
    del environment["COMFYUI_PATH"]
    result = subprocess.run(
        [folder / "run.sh", *arguments, "--device", "cpu", "--quick"],
        cwd=folder.parent,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=240,
    )
    assert result.returncode == 0, result.stdout
