"""A real ComfyUI server for the whole session, with the pack in its ``custom_nodes``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devtools import graph
from devtools.client import Client, Prompt
from devtools.server import Server, running

COMFYUI = Path(os.environ["COMFYUI_PATH"])

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
    with running(tmp_path_factory.mktemp("server"), ["--cache-none"]) as server:
        yield server


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[Client]:
    client = Client(server)
    yield client
    client.close()


@pytest.fixture(scope="session")
def object_info(client: Client) -> dict[str, Any]:
    return client.object_info()


def small(workflow: dict[str, Any], object_info: dict[str, Any]) -> Prompt:
    """A page's workflow for the API, with the demo model, few tokens and two steps."""
    prompt = graph.with_demo_model(graph.to_prompt(workflow, object_info))
    prompt = graph.with_values(prompt, "EmptyLatentImage", width=256, height=192)
    for sampler in ("KSampler", "TokenReductionCompare"):
        prompt = graph.with_values(prompt, sampler, steps=2)
    return prompt


@pytest.fixture(scope="session")
def small_prompt(object_info: dict[str, Any]) -> Callable[..., Prompt]:
    """Loads a shipped workflow by name; ``bypassed=True`` with our nodes bypassed."""

    def load(name: str, bypassed: bool = False) -> Prompt:
        workflow = graph.load(graph.WORKFLOWS / f"{name}.json")
        return small(graph.bypassed(workflow) if bypassed else workflow, object_info)

    return load
