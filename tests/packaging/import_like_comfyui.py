"""import_like_comfyui.py PACK COMFYUI: load PACK as COMFYUI does and print its node ids.

Every installed package that COMFYUI's requirements.txt does not ask for, directly or through
another package, is hidden first.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def required(requirements: Iterable[str], extras: Iterable[str] = ("",)) -> set[tuple[str, str]]:
    """(package, extra) of the requirements that hold on this machine."""
    parsed = [Requirement(line) for line in requirements]
    return {
        (canonicalize_name(one.name), extra)
        for one in parsed
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras)
        for extra in ("", *one.extras)
    }


def closure(requirements: Iterable[str]) -> set[str]:
    """Names of all packages that the requirements bring, themselves included."""
    seen: set[tuple[str, str]] = set()
    waiting = required(requirements)
    while waiting:
        package, extra = waiting.pop()
        seen.add((package, extra))
        try:
            needs = importlib.metadata.requires(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # a requirement of another platform or an optional one
        waiting |= required(needs, (extra,)) - seen
    return {package for package, _ in seen}


class PathFinderWithout:
    """Finds modules as Python does, except hidden ones: those look as if not installed."""

    find_distributions = staticmethod(PathFinder.find_distributions)
    invalidate_caches = staticmethod(PathFinder.invalidate_caches)

    def __init__(self, hidden: set[str]) -> None:
        self.hidden = hidden

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in self.hidden:
            return None
        return PathFinder.find_spec(name, path, target)


def main(pack: Path, comfyui: Path) -> None:
    lines = (comfyui / "requirements.txt").read_text(encoding="utf-8").splitlines()
    allowed = closure(line for line in map(str.strip, lines) if line and not line.startswith("#"))
    hidden = {
        module
        for module, packages in importlib.metadata.packages_distributions().items()
        if not allowed & {canonicalize_name(package) for package in packages}
    }
    if not {"pytest", "comfy_cli", "tomesd"} <= hidden or "torch" in hidden:
        raise SystemExit(f"hides the wrong modules: {sorted(hidden)}")
    for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
        del sys.modules[name]
    sys.meta_path[sys.meta_path.index(PathFinder)] = PathFinderWithout(hidden)
    assert importlib.util.find_spec("pytest") is None

    sys.path.insert(0, str(comfyui))
    from comfy.cli_args import args

    args.cpu = True
    name = str(pack).replace(".", "_x_")
    spec = importlib.util.spec_from_file_location(name, pack / "__init__.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    nodes = asyncio.run(asyncio.run(module.comfy_entrypoint()).get_node_list())
    print(*(node.GET_SCHEMA().node_id for node in nodes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
