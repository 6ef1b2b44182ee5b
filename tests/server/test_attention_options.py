"""ComfyUI chooses the attention; the nodes must work under each that needs no extra package."""

from __future__ import annotations

import numpy as np
import pytest

from devtools.client import Client
from devtools.server import running


@pytest.mark.parametrize("kind", ["pytorch", "split", "quad"])
def test_both_nodes_work_under_each_attention(kind, tmp_path, small_prompt, files_before):
    with running(tmp_path, [f"--use-{kind}-cross-attention"]) as server:
        client = Client(server)
        pairs = [client.run(small_prompt("compare")).images[:2]]
        runs = [client.run(small_prompt("token_merge", bypassed=flag)) for flag in (True, False)]
        pairs.append([run.images[0] for run in runs])
        client.close()
        log = server.log.read_text()
    chosen = {"pytorch": "pytorch", "split": "split optimization", "quad": "sub quadratic"}[kind]
    assert f"Using {chosen}" in log
    for plain, image in pairs:
        difference = np.asarray(image, dtype=float) - np.asarray(plain, dtype=float)
        assert 0 < np.abs(difference).mean() < 60
