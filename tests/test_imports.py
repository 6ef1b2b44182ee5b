"""The rooms of the tree: imports point one way, and nothing shipped needs what is not shipped."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CORE = (
    ".constant_store",
    ".checks .constants .faster_forms",
    ".schedule .tokens .gpus",
    ".settings .grid .draws",
    ".cells .plan .layer",
    ".attention",
    ".windows",
    ".downsampling",
    ".merging",
    ".plan_layer",
    "",
)
NODES = (
    ".kernels .hooks.settings_stack",
    ".hooks.run",
    ".hooks.attention",
    ".hooks.unet .hooks.transformer",
    ".hooks.attach",
    ".common .comparison",
    ".token_merge .token_downsample .compare",
    "",
)
BENCHMARKS = (
    "",
    ".trained .speed",
    ".training",
    ".quality .__main__",
)
"""These are rooms, the lowest first: a file may know its own room and those of the lines before,
and "" is what stands in the folder itself and in no room. Rooms of one line know nothing of each
other."""


def list_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def list_shipped() -> list[Path]:
    return [ROOT / "__init__.py", *list_files("nodes", "tome_core")]


def say(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def list_imports(path: Path) -> set[str]:
    """What a file imports: ``torch.Tensor``, or ``.nodes.common.attach`` where it is written with
    dots, from the root of the tree on.
    """
    package = path.relative_to(ROOT).parts[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= len(package) + 1, f"{say(path)} imports something above the tree"
            above = ("", *package[: len(package) + 1 - node.level]) if node.level else ()
            module = (*above, *filter(None, [node.module]))
            found |= {".".join((*module, alias.name)) for alias in node.names}
    return found


def list_roots(path: Path) -> set[str]:
    """The packages that a file imports without dots."""
    return {name.split(".")[0] for name in list_imports(path)} - {""}


def is_within(name: str, module: str) -> bool:
    return f"{name}.".startswith(f"{module}.")


def find_module(name: str, modules: Iterable[str]) -> str:
    """The innermost of the modules or packages that a name is in, empty where it is in none."""
    return max((each for each in modules if is_within(name, each)), key=len, default="")


def name_module(path: Path) -> str:
    return "." + ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def check_rooms(folder: str, order: tuple[str, ...]) -> None:
    """Imports lead to lower rooms, and in no circle within a room."""
    levels = {
        f".{folder}{room}": level
        for level, line in enumerate(order)
        for room in (line.split() or [""])
    }
    files = {name_module(path): path for path in list_files(folder)}
    assert not levels.keys() - files.keys(), "a room has no file"
    circles: TopologicalSorter[str] = TopologicalSorter()
    for module, path in files.items():
        own = find_module(module, levels)
        for name in list_imports(path):
            room, imported = find_module(name, levels), find_module(name, files)
            if room and room != own:
                assert levels[room] < levels[own], f"{say(path)} imports {name}"
            elif imported and imported != module:
                circles.add(module, imported)
    circles.prepare()  # raises an error that names the files of a circle


def test_the_core_needs_pytorch_and_einops_alone() -> None:
    for path in list_files("tome_core"):
        others = list_roots(path) - sys.stdlib_module_names - {"torch", "einops"}
        assert not others, f"{say(path)} imports {others}"
        own = {name for name in list_imports(path) if name.startswith(".")}
        above = {name for name in own if not is_within(name, ".tome_core")}
        assert not above, f"{say(path)} imports {above}"


def test_rooms_of_the_core_know_lower_ones() -> None:
    check_rooms("tome_core", CORE)


def test_rooms_of_the_nodes_know_lower_ones() -> None:
    """UNets know nothing of transformers, nor the other way round."""
    check_rooms("nodes", NODES)


def test_kernels_are_behind_one_door_and_triton_is_behind_it() -> None:
    for path in list_shipped():
        inside = is_within(name_module(path), ".nodes.kernels")
        assert inside or "triton" not in list_roots(path), f"{say(path)} imports Triton"
        used = {name for name in list_imports(path) if is_within(name, ".nodes.kernels")}
        if not inside and path != ROOT / "nodes" / "__init__.py":
            assert not used, f"{say(path)} imports {used}"


def test_nothing_shipped_imports_what_is_not_shipped_nor_comfyuis_own_nodes() -> None:
    """``import nodes`` finds ComfyUI's module of that name."""
    others = {"nodes", "tests", "benchmarks", "devtools", "tomesd", "hypothesis", "pytest"}
    shipped = (".nodes", ".tome_core")
    for path in list_shipped():
        assert not list_roots(path) & others, f"{say(path)} imports {list_roots(path) & others}"
        own = {name for name in list_imports(path) if name.startswith(".")}
        lost = {name for name in own if not any(is_within(name, each) for each in shipped)}
        assert not lost, f"{say(path)} imports {lost}"


def test_the_comparison_knows_our_nodes_by_what_a_listener_hears() -> None:
    known = (
        ".nodes.comparison",
        ".nodes.hooks.attach.listen",
        ".nodes.hooks.run.report",
        ".nodes.hooks.run.device_wait",
    )
    for path in list_files("nodes/comparison"):
        own = {name for name in list_imports(path) if name.startswith(".")}
        others = {name for name in own if not any(is_within(name, each) for each in known)}
        assert not others, f"{say(path)} imports {others}"


def test_rooms_of_the_benchmarks_know_lower_ones_and_trained_models_need_no_pack() -> None:
    check_rooms("benchmarks", BENCHMARKS)
    models = [*list_files("benchmarks/trained"), *(ROOT / "benchmarks").glob("random_*.py")]
    for path in models:
        assert "token_merge" not in list_roots(path), f"{say(path)} imports the pack"


def test_names_of_files_say_what_is_in_them() -> None:
    for path in list_shipped():
        vague = path.stem in ("utils", "types", "common") and path != ROOT / "nodes" / "common.py"
        assert not vague, f"{say(path)} could hold anything"


def test_every_folder_of_tests_is_run(pytestconfig: pytest.Config) -> None:
    """Named in pyproject.toml, or below one that is: there in the order of how long they take."""
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")} - {ROOT / "tests"}
    files = set((ROOT / "tests").glob("test_*.py"))
    named = {ROOT / name for name in pytestconfig.getini("testpaths")}
    assert named <= {*folders, *files}
    assert [path for path in (*folders, *files) if not named & {path, *path.parents}] == []
