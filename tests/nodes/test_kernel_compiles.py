"""Our kernels are compiled without a GPU, as a launch would, and what is in the code is asserted.

It says nothing about time. But two programs of a kernel fit on a multiprocessor of a GeForce only
with so much shared memory, and the other figures stand for what makes it wait there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from token_merge.tome_core.gpus import OF_GEFORCE

ROOT = Path(__file__).parents[2]
MOST_SHARED = 50_176
"""Two programs with so many bytes fit on a multiprocessor of a GeForce, of 100 KiB, which takes
1 KiB more of each."""

MOST_SPILLED = 64
"""It is in bytes of a thread."""

HOPPER = 90
ATTENTION = ["attend", "attend_merged"]


def compile_kernels(cache, cases, *capabilities):
    """What is in the code of each kernel, see ``support.compile_kernel``."""
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "tests.support.compile_kernel", cases, *map(str, capabilities)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def check_code(made):
    """Of a kernel, for any GPU but a Hopper."""
    assert made["shared"] <= MOST_SHARED
    assert made["spilled"] <= MOST_SPILLED
    assert 2 not in made["loads"], "numbers of half precision are loaded one by one"
    if made["kernel"] in ATTENTION:
        assert made["warps"] == ["[4, 1]"], "they wait for each other"
        assert made["barriers"] <= 2
        assert made["spills"] <= made["loop"] // 25


def test_a_kernel_fits_twice_on_a_geforce_and_loads_16_bytes_at_once(tmp_path):
    made = compile_kernels(tmp_path, "windows 120", 86)
    assert sorted(each["kernel"] for each in made) == ["attend", "round_and_scale"]
    for each in made:
        check_code(each)
        assert 16 in each["loads"]


def test_a_geforce_multiplies_in_int8_and_sums_values_in_half_precision(tmp_path):
    made = compile_kernels(tmp_path, "int8 128", 86)
    for each in made:
        check_code(each)
    (kinds,) = (each["kinds"] for each in made if each["kernel"] == "attend")
    assert kinds == ["HMMA.16816.F16", "IMMA.16832.S8.S8.SAT"]


@pytest.mark.thorough
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("capability", [80, 86, 89, HOPPER, 120])
def test_kernels_compile_as_they_are_meant_to(capability, tmp_path, request):
    """Once for two sizes of pictures."""
    is_long = request.config.option.long or capability in (86, HOPPER)
    some = "windows 128,merged 128,weighed 128,windows 40,int8 merged 128"
    cases = "all" if is_long else some
    made = compile_kernels(tmp_path, cases, capability)
    # Of merged queries, near and far keys, and the queries that are not of the picture. Of merging,
    # comparing, numbering and averaging tokens. In INT8 keys are rounded before; else values are
    # scaled on a GeForce, but not for the case of a professional card.
    in_int8 = 3 * 2 + 3 * 4
    scaled = (9 if is_long else 4) * (divmod(capability, 10) in OF_GEFORCE)
    assert len(made) == scaled + (7 + 3 * 3 + 3 + 1 + in_int8 if is_long else 3 + 3 + 4)
    for each in made:
        if capability != HOPPER:
            check_code(each)
        elif each["kernel"] in ATTENTION:
            assert (each["warps"], each["spilled"]) == (["[4, 1]"], 0)
