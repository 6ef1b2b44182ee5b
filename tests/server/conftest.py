"""Two real ComfyUI servers for the whole session, with the pack in their ``custom_nodes``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.page import unreached_model

from devtools import graph
from devtools.client import Client, Prompt
from devtools.sandbox import NEWER_PAGE_FOLDER
from devtools.server import Server, link, running

COMFYUI = Path(os.environ["COMFYUI_PATH"])
NEWER_PAGE = Path(sys.prefix, NEWER_PAGE_FOLDER, "comfyui_frontend_package", "static")

# The graphs here are small: more threads would mostly wait for each other, above all where the
# machine has other work.
os.environ["OMP_NUM_THREADS"] = "1"


def list_files(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of every file below a folder."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            status = path.stat()
            found[str(path.relative_to(folder))] = (status.st_size, status.st_mtime_ns)
    return found


@pytest.fixture(scope="session")
def files_before() -> dict[str, tuple[int, int]]:
    """ComfyUI's files before any server was started."""
    return list_files(COMFYUI)


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, files_before: dict[str, tuple[int, int]]
) -> Iterator[Server]:
    # Without its cache, so that a graph that is run again is sampled again.
    with running(_prepare(tmp_path_factory, "server"), ["--cache-none"]) as server:
        yield server


@pytest.fixture(scope="session")
def user_server(
    tmp_path_factory: pytest.TempPathFactory, files_before: dict[str, tuple[int, int]]
) -> Iterator[Server]:
    """Another one, which keeps results as a user's server does. Few tests need it."""
    with running(_prepare(tmp_path_factory, "user-server")) as server:
        yield server


@pytest.fixture(scope="session")
def newer_page_server(
    tmp_path_factory: pytest.TempPathFactory, files_before: dict[str, tuple[int, int]]
) -> Iterator[Server]:
    """One with the page of a later ComfyUI, as most people have it."""
    options = ["--front-end-root", str(NEWER_PAGE)]
    with running(_prepare(tmp_path_factory, "newer-page-server"), options) as server:
        yield server


def _prepare(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    """A server's folder, with a model that our nodes cannot reach."""
    base = tmp_path_factory.mktemp(name)
    link(base / "custom_nodes" / "unreached-model", Path(unreached_model.__file__).parent)
    return base


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[Client]:
    client = Client(server)
    yield client
    client.close()


@pytest.fixture(scope="session")
def object_info(client: Client) -> dict[str, Any]:
    return client.object_info()


SMALL: dict[str, dict[str, int | str]] = {
    "EmptyLatentImage": {"width": 128, "height": 96},
    "EmptySD3LatentImage": {"width": 256, "height": 192},
    "EmptyHunyuanLatentVideo": {"width": 64, "height": 48, "length": 5},
    "KSampler": {"steps": 2},
    "ManualSigmas": {"sigmas": "1, 0.5, 0"},
    "TokenReductionCompare": {"steps": 2},
}


def small(prompt: Prompt) -> Prompt:
    """A copy with a model of ours, few tokens and two steps.

    A checkpoint is replaced by the demo model, a model in several files by a small trained one.
    """
    prompt = graph.with_frames(prompt)
    if graph.find_kind(prompt) == "unet":
        prompt = graph.with_demo_model(prompt)
    else:
        prompt = graph.with_trained_model(prompt, "a red star on a green gradient")
    for kind, values in SMALL.items():
        prompt = graph.with_values(prompt, kind, **values)
    return prompt


@pytest.fixture(scope="session")
def small_prompt(object_info: dict[str, Any]) -> Callable[..., Prompt]:
    """Loads a shipped workflow; of our nodes only those of the kinds that are named act.

    Without kinds, they act as in the file; with none, all are bypassed.
    """

    def load(path: Path, kinds: tuple[str, ...] | None = None) -> Prompt:
        workflow = graph.load(path)
        if kinds is not None:
            workflow = graph.with_only(workflow, *kinds)
        return small(graph.to_prompt(workflow, object_info))

    return load
