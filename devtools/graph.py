"""The shipped workflows as the server's API wants them, with single values changed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from comfy_cli.workflow_to_api import convert_ui_to_api

from .client import Prompt
from .comfyui import ROOT

WORKFLOWS = ROOT / "workflows"
OURS = ("TokenMerge", "TokenDownsample")
LOADER = "CheckpointLoaderSimple"
BYPASSED = 4  # the page's mode of a node that passes its inputs through


def load(path: Path) -> dict[str, Any]:
    """A workflow file in the page's format."""
    workflow: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return workflow


def bypassed(workflow: dict[str, Any]) -> dict[str, Any]:
    """A copy of a page's workflow with our nodes bypassed, as by Ctrl-B in the page."""
    workflow = copy.deepcopy(workflow)
    for node in workflow["nodes"]:
        if node["type"] in OURS:
            node["mode"] = BYPASSED
    return workflow


def to_prompt(workflow: dict[str, Any], object_info: dict[str, Any]) -> Prompt:
    """Convert the page's format to the API's."""
    prompt: Prompt = convert_ui_to_api(workflow, object_info)
    return prompt


def with_demo_model(prompt: Prompt) -> Prompt:
    """A copy with every checkpoint loader replaced by the demo model."""
    prompt = copy.deepcopy(prompt)
    for node in _of(prompt, LOADER):
        node.update(class_type="TokenMergeDemoModel", inputs={"seed": 1})
    return prompt


def with_trained_model(prompt: Prompt, text: str) -> Prompt:
    """A copy with every checkpoint loader replaced by the trained model, and a prompt it knows."""
    prompt = copy.deepcopy(prompt)
    for node in _of(prompt, LOADER):
        node.update(class_type="TokenMergeTrainedModel", inputs={})
    for node in _of(prompt, "KSampler"):
        for name, words in (("positive", text), ("negative", "")):
            source, _ = node["inputs"][name]
            prompt[source]["inputs"]["text"] = words
    return prompt


def with_values(prompt: Prompt, class_type: str, **values: object) -> Prompt:
    """A copy in which every node of this class has these inputs."""
    prompt = copy.deepcopy(prompt)
    for node in _of(prompt, class_type):
        node["inputs"].update(values)
    return prompt


def _of(prompt: Prompt, class_type: str) -> list[dict[str, Any]]:
    return [node for node in prompt.values() if node["class_type"] == class_type]
