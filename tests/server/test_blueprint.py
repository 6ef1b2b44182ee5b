"""The server offers our blueprint to the page."""

from __future__ import annotations

import json

import requests

from devtools import graph
from devtools.comfyui import ROOT

FILES = sorted((ROOT / "subgraphs").glob("*.json"))


def test_server_lists_every_blueprint_and_serves_it(server):
    listed = requests.get(f"{server.url}/global_subgraphs", timeout=30).json()
    ours = {
        entry["name"]: key
        for key, entry in listed.items()
        if entry["info"]["node_pack"] == "custom_nodes.token-merge"
    }
    assert FILES
    assert set(ours) == {path.stem for path in FILES}
    for path in FILES:
        address = f"{server.url}/global_subgraphs/{ours[path.stem]}"
        served = requests.get(address, timeout=30).json()
        assert json.loads(served["data"]) == json.loads(path.read_text(encoding="utf-8"))


def test_blueprint_converts_to_nodes_that_the_server_knows(object_info):
    for path in FILES:
        for node in graph.to_prompt(graph.load(path), object_info).values():
            assert node["class_type"] in object_info
