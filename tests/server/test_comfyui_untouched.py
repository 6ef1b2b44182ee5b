"""The ComfyUI that the commands use may be the user's own."""

from __future__ import annotations

from devtools import graph

from .conftest import COMFYUI, list_files


def test_no_file_of_comfyui_is_written(client, small_prompt, files_before):
    client.run(small_prompt(graph.SD15))
    assert list_files(COMFYUI) == files_before
