"""What is in the code of a kernel that Triton compiled for a GPU of NVIDIA's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import triton

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
LABEL = re.compile(r"^(\.L\w+):")
BRANCH = re.compile(r"\bBRA\b.*`\((\.L\w+)\)")
OPERATION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
LAYOUT = re.compile(r"^(#\w+) = #ttg\.nvidia_mma<.*?warpsPerCTA = (\[\d+, \d+\])", re.MULTILINE)
PRODUCT = re.compile(r"dot.*, (#\w+)>(?: loc.*)?$")


def describe(kernel: Any) -> dict[str, Any]:
    """What the code takes, and what is in its main loop: the shortest one that has products.

    Returns:
        shared: bytes of shared memory. registers: of a thread. spilled: bytes that a thread stores
        elsewhere for want of registers. warps: how the main loop's products are divided among them,
        along rows and columns. loads: how many bytes those from global memory take at once. loop,
        barriers, products, spills: instructions in the main loop, and how many of them are such;
        the last with those that bring back what was spilled. kinds: of products.
    """
    lines = _disassemble(kernel.asm["cubin"])
    operations = [_find_operation(line) for line in lines]
    loop = [each for each in _take_loop(lines, operations) if each]
    return {
        "shared": kernel.metadata.shared,
        "registers": _count_registers(kernel.asm["cubin"]),
        "spilled": sum(_measure(each) for each in operations if each.startswith("STL")),
        "warps": _list_warps(kernel.asm["ttgir"].splitlines()),
        "loads": sorted({_measure(each) for each in operations if _loads(each)}),
        "loop": len(loop),
        "barriers": sum(each.startswith(("BAR.", "SYNCS")) for each in loop),
        "products": sum("MMA" in each for each in loop),
        "spills": sum(each.startswith(("STL", "LDL")) for each in loop),
        "kinds": sorted({each for each in loop if "MMA" in each}),
    }


def _disassemble(cubin: bytes) -> list[str]:
    return _run("nvdisasm", cubin, "-c").splitlines()


def _count_registers(cubin: bytes) -> int:
    found = re.search(r"REG:(\d+)", _run("cuobjdump", cubin, "-res-usage"))
    assert found
    return int(found[1])


def _run(tool: str, cubin: bytes, *options: str) -> str:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        command = [str(TOOLS / tool), *options, str(path)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _list_warps(lines: list[str]) -> list[str]:
    """How the products of the first loop that has some are divided among warps."""
    layouts = dict(LAYOUT.findall("\n".join(lines)))
    first = next((at for at, line in enumerate(lines) if "scf.for" in line), len(lines))
    end = next((at for at, line in enumerate(lines[first:], first) if "scf.yield" in line), first)
    found = (layout for line in lines[first:end] for layout in PRODUCT.findall(line))
    return sorted({layouts[each] for each in found if each in layouts})


def _find_operation(line: str) -> str:
    found = OPERATION.search(line)
    return found[1] if found else ""


def _take_loop(lines: list[str], operations: list[str]) -> list[str]:
    """The operations of the shortest loop that has products."""
    places = {found[1]: at for at, line in enumerate(lines) if (found := LABEL.match(line))}
    loops = []
    for at, line in enumerate(lines):
        branch = BRANCH.search(line)
        first = places.get(branch[1], at) if branch else at
        if first < at and any("MMA" in each for each in operations[first:at]):
            loops.append(operations[first : at + 1])
    return min(loops, key=len, default=[])


def _loads(operation: str) -> bool:
    return operation.startswith(("LDG.", "LDGSTS."))


def _measure(operation: str) -> int:
    """Bytes that an operation moves."""
    parts = operation.split(".")
    widths = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
    return next((widths[each] for each in parts if each in widths), 4)
