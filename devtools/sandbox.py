"""The sandbox: a virtual environment in the cache in which ComfyUI and every check can run.

Only the standard library is used here, since nothing else is there before it is built.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import cache, comfyui, packages
from .packages import SandboxError
from .progress import Progress

HERE = Path(__file__).absolute().parent
REQUIREMENTS = HERE / "requirements.txt"
NO_DEPS = HERE / "requirements-no-deps.txt"
NEWER_PAGE = HERE / "requirements-newer-page.txt"
NEWER_PAGE_FOLDER = "newer-page"
"""In the environment."""
TORCHVISION_HOOK = HERE / "site" / "token_merge_torchvision.py"

NOT_INSTALLED = ("torchaudio", "comfyui-workflow-templates")
"""Of ComfyUI's own requirements. The first is installed without what it asks for, see ``NO_DEPS``;
the second brings 400 MB of pictures. Without it the page lists the templates of packs alone."""

# Imported once at the end of a set-up: a sandbox that cannot do this is not called ready.
PROBE = "import torch, torchvision, torchaudio, comfy_cli, pytest, selenium, tomesd"


@dataclass(frozen=True)
class Sandbox:
    """A Python with everything installed, and the ComfyUI to run with it."""

    python: Path
    comfyui: Path

    def environment(self) -> dict[str, str]:
        """Environment variables for processes of the sandbox."""
        programs = f"{self.python.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        home = cache.folder() / "home"
        home.mkdir(parents=True, exist_ok=True)
        # Every process would compile torch and ComfyUI anew, which takes longer than all else that
        # it does before it starts.
        inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return {
            **inherited,
            "COMFYUI_PATH": str(self.comfyui),
            "TOKEN_MERGE_CACHE": str(cache.folder()),
            "PATH": programs,
            # Some libraries keep settings in the user's own folder; none of these is the user's.
            "HOME": str(home),
            "USERPROFILE": str(home),
            # Byte code is kept, but not in ComfyUI's folder.
            "PYTHONPYCACHEPREFIX": str(cache.folder() / "pycache"),
            # No command here reports anything to anyone, nor asks the internet for a model.
            "DO_NOT_TRACK": "1",
            "HF_HUB_OFFLINE": "1",
        }


def check_python() -> None:
    """Raise a SandboxError where this Python is too old for the commands."""
    if sys.version_info < (3, 10):
        raise SandboxError(f"Python is {sys.version.split()[0]}, expected 3.10 or later")


def ready() -> Sandbox:
    """The sandbox, built first where it is missing or incomplete."""
    pinned = comfyui.PINNED.folder(cache.folder())
    own = comfyui.users_own()
    if own == pinned:  # said so by `environment` to this process
        own = None
    folder = cache.folder() / "environments" / _key(own)
    source = own or pinned
    if not _is_ready(folder, source):
        with cache.locked(cache.folder() / "set-up.lock"):
            # Another process may have finished the work while this one waited.
            if not _is_ready(folder, source):
                _set_up(folder, own)
    return Sandbox(find_python(folder), source)


def _is_ready(folder: Path, source: Path) -> bool:
    return is_complete(folder) and comfyui.is_comfyui(source)


def _set_up(folder: Path, own: Path | None) -> None:
    """Do whatever is missing. own: the user's ComfyUI, None where the pinned one is to be used."""
    start = time.monotonic()
    print(f"Setting up the sandbox in {cache.folder()} (once; a few minutes)", flush=True)
    with Progress("Looking at what is there") as progress:
        if not is_complete(folder):
            _create(folder, progress)
        source = own or comfyui.fetch(find_python(folder), cache.folder(), progress)
        if not is_complete(folder):
            _fill(folder, source, progress)
    print(f"The sandbox is ready ({time.monotonic() - start:.0f} s)", flush=True)


def _key(own: Path | None) -> str:
    """Names the environment after all that decides its content."""
    wanted = [sys.version, sys.platform, REQUIREMENTS.read_text(), NO_DEPS.read_text()]
    wanted += [NEWER_PAGE.read_text(), TORCHVISION_HOOK.read_text()]
    wanted += [(own / "requirements.txt").read_text() if own else comfyui.PINNED.sha256]
    return hashlib.sha256("\0".join(wanted).encode()).hexdigest()[:12]


def find_python(folder: Path) -> Path:
    """The interpreter of the virtual environment in ``folder``."""
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def is_complete(folder: Path) -> bool:
    """Whether a set-up of ``folder`` came to its end and its interpreter is still there."""
    return (folder / "complete").is_file() and find_python(folder).exists()


def _create(folder: Path, progress: Progress) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.iterdir():
        if not is_complete(other):
            progress.stage(f"Removing an incomplete environment in {other}")
            shutil.rmtree(other)
    progress.stage("Creating an environment for Python")
    try:
        venv.create(folder, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SandboxError(f"this Python cannot create an environment with pip: {error}") from error


def _fill(folder: Path, source: Path, progress: Progress) -> None:
    sandbox = Sandbox(find_python(folder), source)
    names = (source / "requirements.txt").read_text().splitlines()
    wanted = folder / "comfyui-requirements.txt"
    wanted.write_text("\n".join(name for name in names if not name.startswith(NOT_INSTALLED)))
    progress.stage("Packages")
    packages.add_uv(folder, sandbox.python, progress)
    install = partial(packages.install, folder, sandbox.python, progress)
    install("--requirement", REQUIREMENTS, "--requirement", wanted)
    progress.stage("Last packages")
    install("--no-deps", "--requirement", NO_DEPS)
    target = folder / NEWER_PAGE_FOLDER
    install("--no-deps", "--target", target, "--requirement", NEWER_PAGE)
    progress.stage("Trying the packages")
    _mend_torch_companions(sandbox)
    probe = _run(sandbox, PROBE)
    if probe.returncode:
        raise SandboxError(f"the sandbox in {folder} does not work:\n{probe.stderr.strip()}")
    (folder / "complete").touch()


def _mend_torch_companions(sandbox: Sandbox) -> None:
    """Make torchvision and torchaudio importable beside a torch without CUDA.

    Their wheels link CUDA's libraries. Where torch has CUDA, or where they import as they are,
    nothing is touched. ComfyUI needs only their Python parts.
    """
    if _output(sandbox, "import torch; print(torch.version.cuda)") != "None":
        return
    libraries = Path(_output(sandbox, "import sysconfig; print(sysconfig.get_path('purelib'))"))
    if _run(sandbox, "import torchvision").returncode:
        shutil.copy(TORCHVISION_HOOK, libraries)
        line = f"import {TORCHVISION_HOOK.stem}\n"
        (libraries / f"{TORCHVISION_HOOK.stem}.pth").write_text(line)
    if _run(sandbox, "import torchaudio").returncode:
        for library in (libraries / "torchaudio").rglob("*.so"):
            library.unlink()


def _output(sandbox: Sandbox, code: str) -> str:
    return _run(sandbox, code).stdout.strip()


def _run(sandbox: Sandbox, code: str) -> subprocess.CompletedProcess[str]:
    """In its environment, so that what Python compiles here is not compiled again later."""
    command = f"{sandbox.python}", "-c", code
    return subprocess.run(command, capture_output=True, text=True, env=sandbox.environment())
