"""A folder that runs a command of the benchmarks on a bare GPU machine, without a network.

Such a machine has torch, torchvision, einops, safetensors and transformers. The folder brings the
tree, ComfyUI's Python files and the small packages that ComfyUI imports beside those; the large
ones among them are never called here, see stand_ins.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .loading import ROOT
from .machine import find_commit

MOST_MEBIBYTES = 64
TREE = ("__init__.py", "benchmarks", "nodes", "tome_core", "LICENSE")
COMFYUI = ("comfy", "comfy_api", "comfy_execution", "comfy_extras", "utils")

# What ComfyUI and the benchmark import beyond a bare machine's packages; all but one are pure
# Python. The rest of ComfyUI's requirements comes with torchvision and transformers.
WHEELS = (
    "comfy-kitchen",
    "torchsde",
    "trampoline",
    "tomesd",
    "rich",
    "markdown-it-py",
    "mdurl",
    "pygments",
)
BINARY_WHEELS = ("comfy-aimdo", "psutil")
KITCHEN = "comfy-kitchen==0.2.40"
"""With the kernels of the parts ``rivals`` and ``models``, which alone import this one."""
PLATFORMS = (
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
)

SCRIPT = """\
#!/bin/sh
# Runs on this machine's GPU; arguments go to the command. What it makes lies beside this file.
# Installs nothing: the packages that ComfyUI needs lie in packages/.
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/token-merge" || exit 1
export COMFYUI_PATH="$here/comfyui" TOKEN_MERGE_COMMIT={commit} PYTHONDONTWRITEBYTECODE=1
# packages/ comes after the machine's own packages, so that none of those is replaced.
exec "${{PYTHON:-python3}}" -c '
import sys
packages, kitchen = sys.argv[1:3]
del sys.argv[1:3]
sys.path.append(packages)
if {{"rivals", "models"}} & {{*sys.argv}}:
    sys.path.insert(0, kitchen)
from {module} import main
sys.exit(main(sys.argv[1:]))
' "$here/packages" "$here/kitchen" {arguments} "$@"
"""


def pack(
    folder: Path, module: str, arguments: str, add: Callable[[Path], object] = lambda folder: None
) -> str:
    """Fill ``folder``, which must be missing or empty; returns what to do with it.

    module: its ``main`` is run with ``arguments``, which are shell text with ``$here`` for the
    folder. add: puts what else is needed into the folder.

    Raises RuntimeError where the folder holds something, pip fails or the result is too large.
    """
    if folder.exists() and any(folder.iterdir()):
        raise RuntimeError(f"{folder} is not empty")
    comfyui = Path(os.environ["COMFYUI_PATH"])
    for name in TREE:
        _copy(ROOT / name, folder / "token-merge" / name)
    for name in COMFYUI:
        _copy(comfyui / name, folder / "comfyui" / name)
    for file in comfyui.glob("*.py"):
        _copy(file, folder / "comfyui" / file.name)
    _install(folder / "packages", _pin(WHEELS), ("any",))
    _install(folder / "packages", _pin(BINARY_WHEELS), PLATFORMS)
    add(folder)
    script = folder / "run.sh"
    commit = find_commit(ROOT) or "unknown"
    text = SCRIPT.format(commit=commit, module=module, arguments=arguments)
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)
    mebibytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20
    if mebibytes > MOST_MEBIBYTES:
        raise RuntimeError(f"{folder} has {mebibytes:.0f} MiB, expected {MOST_MEBIBYTES} at most")
    return f"{folder} ({mebibytes:.0f} MiB): copy it to the GPU machine and run run.sh there"


def add_kitchen(folder: Path) -> None:
    """The kernels of these parts, but for other GPUs than NVIDIA's: these take four times
    as much room.
    """
    _install(folder / "kitchen", [KITCHEN], PLATFORMS)
    for file in (folder / "kitchen").glob("comfy_kitchen/backends/hip/*.so"):
        file.unlink()


def _copy(source: Path, target: Path) -> None:
    """Python files only: tokenizers, weights and pictures are not read."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copy(source, target)
        return
    for file in source.rglob("*.py"):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)


def _pin(packages: tuple[str, ...]) -> list[str]:
    """The versions of this environment."""
    from importlib.metadata import version

    return [f"{name}=={version(name)}" for name in packages]


def _install(folder: Path, wanted: list[str], platforms: tuple[str, ...]) -> None:
    """Unpack packages that were built for ``platforms`` and any recent Python."""
    options = ["--quiet", "--no-deps", "--no-compile", "--only-binary=:all:"]
    options += [word for name in platforms for word in ("--platform", name)]
    options += ["--python-version", "3.12", "--target", str(folder), "--upgrade"]
    command = [sys.executable, "-m", "pip", "install", *options, *wanted]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"pip could not fetch {', '.join(wanted)}:\n{result.stderr.strip()}")
