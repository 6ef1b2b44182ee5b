"""The machine that numbers were measured on, and the commit of the tree."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

MEASURED = ("nodes", "tome_core", "benchmarks", ":!benchmarks/*/results/*")
"""Numbers depend on these files, as git's pathspecs. Results change while they are measured."""


def describe(device: str, root: Path) -> dict[str, Any]:
    """What the numbers depend on; nothing that names a person or a place."""
    import torch

    return {
        "processor": find_processor(),
        "cores": torch.get_num_threads(),
        "accelerator": torch.cuda.get_device_name() if device == "cuda" else None,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "comfyui": import_module("comfyui_version").__version__,
        "attention": "pytorch (scaled_dot_product_attention)",
        "commit": find_commit(root),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
    }


def name_folder(device: str) -> str:
    """The processor's or the GPU's name, as a folder's."""
    import torch

    name = torch.cuda.get_device_name() if device == "cuda" else find_processor()
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def find_processor() -> str:
    """The processor's model name."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def find_commit(root: Path) -> str | None:
    """The commit of the tree, with "+" behind it where what is measured was changed since.

    A packed tree is told it by its ``run.sh``.
    """
    if told := os.environ.get("TOKEN_MERGE_COMMIT"):
        return told
    try:
        head = _run_git(root, "rev-parse", "--short=12", "HEAD")
    except OSError:
        return None
    if head.returncode:
        return None
    changed = _run_git(root, "diff", "--quiet", "HEAD", "--", *MEASURED).returncode
    return head.stdout.strip() + ("+" if changed else "")


def _run_git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
