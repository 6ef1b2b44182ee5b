"""Triton's compiler makes our kernels for the GPUs that they are for, without having one.

Blackwell in the long form alone: code for it is made as for Ampere.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.thorough
def test_our_kernels_compile_for_every_generation_of_gpus_that_they_are_for(tmp_path, request):
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    capabilities = ["80", "90", "120"] if request.config.option.long else ["80", "90"]
    command = [sys.executable, "-m", "tests.support.compile_kernel", *capabilities]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    made = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit()]
    # Each generation, and one for another type: windows, near and far keys of merged queries.
    # And each generation: weighed keys, comparing, numbering and averaging tokens, merging queries
    # of strips.
    assert len(made) == (len(capabilities) + 1) * 3 + len(capabilities) * 5
    assert all(int(size) > 1000 for *_, size in made)
