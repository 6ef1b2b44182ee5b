"""Makes the real ComfyUI and the pack importable, as ComfyUI itself imports them."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

if TYPE_CHECKING:
    from comfy.model_patcher import ModelPatcher

ROOT = Path(__file__).parents[1]
ON_SERVER = "tests/server/"
ON_GPU = "tests/gpu/"
"""The tests of this folder need an NVIDIA GPU. Where there is none, only their imports are
tried."""
THOROUGH = ("tests/benchmarks/", "tests/server/page/")
"""All tests of these folders are thorough, as if each were marked so."""


def _put_comfyui_on_path() -> None:
    comfyui = os.environ.get("COMFYUI_PATH")
    if not comfyui:
        raise RuntimeError("COMFYUI_PATH is not set: run the tests by `python -m devtools test`")
    sys.path.insert(0, comfyui)
    import torch

    if not torch.cuda.is_available():
        # Before anything imports Triton: its functions then run on a CPU.
        os.environ["TRITON_INTERPRET"] = "1"
    from comfy.cli_args import args

    args.cpu = True


def _put_development_packages_on_path() -> None:
    """``benchmarks``, ``devtools`` and the tests' own ``support``.

    Last, so that ``nodes`` remains ComfyUI's own module.
    """
    sys.path += [str(ROOT), str(ROOT / "tests")]
    pytest.register_assert_rewrite("support", "interplay")


def _import_pack() -> None:
    """As the package ``token_merge``: its folder's name need not be an identifier."""
    spec = importlib.util.spec_from_file_location("token_merge", ROOT / "__init__.py")
    assert spec and spec.loader
    pack = importlib.util.module_from_spec(spec)
    sys.modules["token_merge"] = pack
    spec.loader.exec_module(pack)


# How long an example takes says something about the machine, not about the code.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        help="every test; without it the short run, which finds nearly everything in a few minutes",
    )
    parser.addoption(
        "--rest",
        action="store_true",
        help="only the tests that the short run leaves out",
    )
    parser.addoption(
        "--long",
        action="store_true",
        help="--all, with all cases and repeats of the tests that otherwise try some of them",
    )
    parser.addoption(
        "--write-compatibility",
        action="store_true",
        help="with --long: write what tests/interplay found into docs/compatibility.md",
    )
    parser.addoption(
        "--cases",
        type=int,
        metavar="N",
        help="N random cases of each fuzz test and long run, other ones each time; `python -m "
        "devtools soak` sets it (default: a few, always the same)",
    )


def pytest_configure(config: pytest.Config) -> None:
    from support.fuzzing import SOAK

    config.addinivalue_line("markers", "thorough: left out without --all or --rest")
    if config.getoption("all") and config.getoption("rest"):
        raise pytest.UsageError("--all and --rest: expected at most one of them")
    config.option.all |= config.getoption("long") and not config.getoption("rest")
    SOAK.cases = config.getoption("cases")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of this run. With several processes, those that need a server come first,
    for they take longest.
    """
    chosen, left_out = [], []
    for item in items:
        (chosen if _is_chosen(item) else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = chosen
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(ON_SERVER))  # stable


def _is_chosen(item: pytest.Item) -> bool:
    if item.nodeid.startswith(ON_GPU) and not _has_gpu():
        return False
    return item.config.getoption("all") or is_thorough(item) == item.config.getoption("rest")


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available() and not torch.version.hip


def is_thorough(item: pytest.Item) -> bool:
    """Whether the short run leaves a test out."""
    return item.nodeid.startswith(THOROUGH) or item.get_closest_marker("thorough") is not None


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Say which test failed at once; pytest itself tells what happened at the end."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nFAILED {report.nodeid}\n{report.longreprtext[-2000:]}", flush=True)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadfile``, tests that share what takes long to make stay in one process: those
    of one file, and all that need a server.
    """
    if config.getoption("dist") != "loadfile":
        return None

    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return ON_SERVER if file.startswith(ON_SERVER) else file

    return Scheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    from support.fuzzing import SOAK

    if SOAK.cases:
        for line in SOAK.describe():
            terminalreporter.line(line)


_put_comfyui_on_path()
_put_development_packages_on_path()
_import_pack()


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """What a test draws does not depend on the tests before it."""
    import torch

    torch.manual_seed(0)


@pytest.fixture(scope="session")
def token_merge() -> Callable[..., ModelPatcher]:
    """The node Token Merge (Advanced) with its defaults, except what the test names, and in all
    steps: most tests have few.
    """
    from benchmarks import ours

    return partial(ours.apply_in_all_steps, "TokenMergeAdvanced")


@pytest.fixture(scope="session")
def tome(token_merge: Callable[..., ModelPatcher]) -> Callable[..., ModelPatcher]:
    """The same with half of the tokens merged, keys and values too, as in ToMe for SD."""
    return partial(token_merge, ratio=0.5, target="queries, keys and values")


@pytest.fixture(scope="session")
def token_downsample() -> Callable[..., ModelPatcher]:
    """The same of Token Downsample (Advanced)."""
    from benchmarks import ours

    return partial(ours.apply_in_all_steps, "TokenDownsampleAdvanced")
