"""Imports point one way: in the pack, inside tome_core, and between the rooms of benchmarks."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = sorted((ROOT / "tome_core").glob("*.py"))
NODES = sorted((ROOT / "nodes").rglob("*.py"))
COMFYUI = {
    "comfy",
    "comfy_api",
    "comfy_execution",
    "comfy_extras",
    "comfyui_version",
    "folder_paths",
    "latent_preview",
    "nodes",
    "server",
}

CORE_ORDER = [
    "checks",
    "schedule",
    "settings",
    "payoff",
    "merge_settings",
    "downsample_settings",
    "grid",
    "draws",
    "tokens",
    "streams",
    "cells",
    "tiles",
    "partition",
    "plan",
    "downsample",
    "query_groups",
    "attention_kernels",
    "partial_attention",
    "tiled_axis",
    "merged_queries",
    "key_sets",
    "key_cells",
    "drawn_keys",
    "window_plan",
    "proportional",
    "key_blocks",
    "window_heads",
    "window_attention",
    "global_matching",
    "local_matching",
    "tile_matching",
    "layer_size",
    "layer_tokens",
    "window_planning",
    "merge_planning",
    "planning",
]
"""Lower ideas first: a file may import those before it."""


def imported(path: Path) -> list[tuple[int, str]]:
    """(dots, module) of every import; dots is 0 for an absolute one."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.level, node.module or ""))
    return found


def absolute_roots(path: Path) -> set[str]:
    return {module.split(".")[0] for dots, module in imported(path) if dots == 0}


@pytest.mark.parametrize("path", CORE, ids=lambda p: p.stem)
def test_core_knows_nothing_of_comfyui(path):
    assert not absolute_roots(path) & COMFYUI
    assert all(dots <= 1 for dots, _ in imported(path)), "imports something above tome_core"


@pytest.mark.parametrize("path", CORE, ids=lambda p: p.stem)
def test_core_imports_lower_ideas_only(path):
    if path.stem == "__init__":
        return
    own = {module for dots, module in imported(path) if dots == 1}
    assert own <= set(CORE_ORDER[: CORE_ORDER.index(path.stem)])


@pytest.mark.parametrize("path", NODES, ids=lambda p: p.stem)
def test_nodes_never_import_comfyuis_own_module_of_that_name(path):
    assert "nodes" not in absolute_roots(path)


HOOKS = ROOT / "nodes" / "hooks"
ABOVE = {"registry"}
"""The one shared hook that knows the architectures."""


def own_modules(path: Path) -> set[str]:
    """Modules of the pack that a hook imports, named from nodes/hooks on; "" is above it."""
    folder = list(path.relative_to(HOOKS).parts[:-1])
    found = set()
    for dots, module in imported(path):
        if dots:
            inside = folder[: len(folder) - dots + 1] if dots <= len(folder) + 1 else None
            names = [] if inside is None else [*inside, *filter(None, module.split("."))]
            found.add(".".join(names))
    return found


@pytest.mark.parametrize("path", sorted(HOOKS.rglob("*.py")), ids=lambda p: p.stem)
def test_hooks_import_downward_only(path):
    """registry -> architectures -> shared hooks -> tome_core; never the nodes."""
    others = {module.split(".")[0] for module in own_modules(path)} - {""}
    architecture = path.relative_to(HOOKS).parts[0]
    if architecture in ("unet", "transformer"):
        assert not others & (ABOVE | {"unet", "transformer"} - {architecture})
    elif path.stem not in ABOVE:
        assert not others & (ABOVE | {"unet", "transformer"})
    above = len(path.relative_to(HOOKS).parts) + 1
    assert all(
        module.startswith("tome_core") for dots, module in imported(path) if dots >= above
    ), "imports a node"


@pytest.mark.parametrize("path", sorted((ROOT / "nodes" / "comparison").glob("*.py")))
def test_the_comparison_needs_no_node_and_no_architecture(path):
    """It knows our nodes by what the registry's listener hears."""
    above = {module for dots, module in imported(path) if dots > 1}
    assert above <= {"hooks.registry", "hooks.run_report", "hooks.waiting"}


PLANS = {"MergePlan", "TilePlan", "ChoosingPlan", "InterpolationPlan", "MergingPlan", "Plan"}
PLANS |= {"LinkedPlan", "PicturePlan"}
SETTINGS = {"MergeSettings", "DownsampleSettings"}


@pytest.mark.parametrize("path", [*CORE, *NODES], ids=lambda p: p.stem)
def test_no_file_asks_what_class_a_plan_or_settings_are_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            names = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
            assert not names & (PLANS | SETTINGS)


@pytest.mark.parametrize("path", [ROOT / "__init__.py", *CORE, *NODES], ids=lambda p: p.stem)
def test_nothing_shipped_imports_tests_benchmarks_or_devtools(path):
    modules = {module.split(".")[0] for _, module in imported(path)}
    assert not modules & {"tests", "benchmarks", "devtools", "tomesd", "hypothesis", "pytest"}


BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))
MAY_KNOW = {
    "benchmarks": set(),
    "trained": set(),
    "speed": set(),
    "quality": {"speed", "trained"},
}
"""Which other rooms a room of the benchmarks may import; ``benchmarks``: what they share."""


def imported_rooms(path: Path) -> set[str]:
    """Rooms of the benchmarks other than the file's own, however they are written."""
    package = path.relative_to(ROOT).parts[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            module = (*base, *(node.module or "").split("."))
            names = [".".join(filter(None, (*module, alias.name))) for alias in node.names]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found |= {name.split(".")[1] for name in names if name.startswith("benchmarks.")}
    return found & set(MAY_KNOW) - {path.parent.name}


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_rooms_of_the_benchmarks_know_lower_rooms_only(path):
    may_know = MAY_KNOW[path.parent.name]
    if path.stem == "__main__":
        may_know = {"speed"}
    assert imported_rooms(path) <= may_know


def test_trained_models_need_comfyui_but_not_the_pack():
    folder = ROOT / "benchmarks"
    for path in (*(folder / "trained").glob("*.py"), *folder.glob("random_*.py")):
        assert "token_merge" not in absolute_roots(path)


def test_every_folder_of_tests_is_run(pytestconfig):
    """Named in pyproject.toml, or below one that is: there in the order of how long they take."""
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")} - {ROOT / "tests"}
    files = set((ROOT / "tests").glob("test_*.py"))
    named = {ROOT / name for name in pytestconfig.getini("testpaths")}
    assert named <= {*folders, *files}
    assert [path for path in (*folders, *files) if not named & {path, *path.parents}] == []
