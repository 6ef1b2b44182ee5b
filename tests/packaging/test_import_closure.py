"""The pack imports with nothing but what ComfyUI's own requirements bring."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from token_merge.nodes import NODES

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("import_like_comfyui.py")


@pytest.mark.thorough
def test_imports_with_comfyui_requirements_alone(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, SCRIPT, ROOT, os.environ["COMFYUI_PATH"]],
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=240,
    )
    assert result.returncode == 0, result.stdout
    assert result.stdout.splitlines()[-1] == " ".join(node.GET_SCHEMA().node_id for node in NODES)
