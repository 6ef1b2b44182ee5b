"""A small graph for the server's API, with one of our nodes."""

from __future__ import annotations

from typing import Any

from token_merge.nodes import NODES

from devtools.client import Prompt

WIDGETS = {
    node.GET_SCHEMA().node_id: {
        widget.id: widget for widget in node.GET_SCHEMA().inputs if widget.id != "model"
    }
    for node in NODES
}
"""These are the inputs of each of our nodes beside the model, by name."""


def make_prompt(
    kind: str | None,
    *,
    model: str = "demo",
    size: tuple[int, int] = (128, 128),
    steps: int = 1,
    seed: int = 1,
    name: str = "latent",
    **values: Any,
) -> Prompt:
    """Samples a latent and saves it.

    kind: of our node "5", None for none. model: "demo", or the kind of a small trained one. size:
    width and height in pixels of eight to a cell of the latent. name: of the file. values: inputs
    of our node other than its defaults; it acts in early steps too.
    """
    loader = (
        {"class_type": "TokenMergeDemoModel", "inputs": {"seed": 1}}
        if model == "demo"
        else {"class_type": "TokenMergeTrainedModel", "inputs": {"kind": model}}
    )
    width, height = size
    prompt: Prompt = {
        "1": loader,
        "2": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red star", "clip": ["1", 1]}},
        "4": {
            "class_type": "EmptyLatentImage",
            "inputs": {"width": width, "height": height, "batch_size": 1},
        },
        "6": {
            "class_type": "KSampler",
            "inputs": {
                "model": ["5" if kind else "1", 0],
                "positive": ["2", 0],
                "negative": ["2", 0],
                "latent_image": ["4", 0],
                "seed": seed,
                "steps": steps,
                "cfg": 1.0,
                "sampler_name": "euler",
                "scheduler": "simple",
                "denoise": 1.0,
            },
        },
        "7": {"class_type": "SaveLatent", "inputs": {"samples": ["6", 0], "filename_prefix": name}},
    }
    if kind:
        defaults = {name: widget.default for name, widget in WIDGETS[kind].items()}
        # The few steps of most prompts are early ones.
        early = {"exact_early_steps": False} if "exact_early_steps" in defaults else {}
        inputs = {**defaults, **early, **values, "model": ["1", 0]}
        prompt["5"] = {"class_type": kind, "inputs": inputs}
    return prompt
