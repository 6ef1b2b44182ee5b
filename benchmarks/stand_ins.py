"""Stand-ins for packages that ComfyUI imports and the measured path never calls.

A bare GPU machine lacks them, and their wheels are too large to bring along: PyAV for video
nodes, SciPy for a sampler and a pose model. Only what is missing is replaced, and whatever calls a
stand-in fails.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

UNUSED = ("av", "scipy", "torchaudio")


class _Absent:
    """Any name of a missing package: may be mentioned, named in an annotation or subclassed."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ModuleNotFoundError("this package is not installed, a stand-in was imported for it")


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Absent,), {})


class _Finder(MetaPathFinder, Loader):
    def __init__(self, packages: set[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] in self.packages:
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


def install() -> None:
    """Replace those of ``UNUSED`` that are not installed."""
    missing = {name for name in UNUSED if importlib.util.find_spec(name) is None}
    if missing:
        sys.meta_path.append(_Finder(missing))
