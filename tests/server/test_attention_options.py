"""ComfyUI chooses the attention; the nodes must work under each that needs no extra package.

The sub-quadratic one is what it takes on a CPU by itself, under all other tests. Each other one
takes a server of its own, so only PyTorch's is tried but in the long form.
"""

from __future__ import annotations

import numpy as np
import pytest

from devtools import graph
from devtools.client import Client
from devtools.server import running


def pytest_generate_tests(metafunc):
    whole = metafunc.config.getoption("long")
    metafunc.parametrize("kind", ["pytorch", "split"] if whole else ["pytorch"])


@pytest.mark.thorough
def test_both_nodes_run_under_each_attention(kind, tmp_path, small_prompt, files_before):
    with running(tmp_path, [f"--use-{kind}-cross-attention"]) as server:
        client = Client(server)
        unpatched, *ours = (
            client.run(small_prompt(graph.SD15, kinds)).images[0]
            for kinds in ((), ("TokenMerge",), ("TokenDownsample",))
        )
        pairs = [(unpatched, each) for each in ours]
        pairs.append(client.run(small_prompt(graph.COMPARE)).images[:2])
        client.close()
        log = server.log.read_text()
    chosen = {"pytorch": "pytorch", "split": "split optimization"}[kind]
    assert f"Using {chosen}" in log
    for unpatched, image in pairs:
        difference = np.asarray(image, dtype=float) - np.asarray(unpatched, dtype=float)
        assert 0 < np.abs(difference).mean() < 60
