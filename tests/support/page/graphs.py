"""Graphs as the server's API wants them."""

from __future__ import annotations

from itertools import count

from devtools.client import Prompt

DEFAULTS = {
    "TokenMerge": {"ratio": 0.2, "exact_early_steps": True},
    "TokenDownsample": {"factor": 2.0, "local_window": "auto", "exact_early_steps": True},
}
"""Of the simple nodes; the page fills in those of others."""

# The server keeps results: a graph that was run before would not be sampled again.
SEEDS = count(1)


def sample_with(*ours: str, **values: object) -> Prompt:
    """Two quick steps of the demo model through these nodes of ours, whose ids count from "11".

    values: inputs of all of them.
    """
    prompt: Prompt = {"1": {"class_type": "TokenMergeDemoModel", "inputs": {"seed": 1}}}
    model = "1"
    for number, kind in enumerate(ours, start=11):
        inputs = {"model": [model, 0], **DEFAULTS.get(kind, {}), **values}
        prompt[model := str(number)] = {"class_type": kind, "inputs": inputs}
    sampler = {
        **{"model": [model, 0], "positive": ["2", 0], "negative": ["2", 0]},
        **{"latent_image": ["3", 0], "seed": next(SEEDS), "steps": 2, "cfg": 1.0, "denoise": 1.0},
        **{"sampler_name": "euler", "scheduler": "normal"},
    }
    size = {"width": 256, "height": 192, "batch_size": 1}
    rest = {
        "2": ("CLIPTextEncode", {"clip": ["1", 1], "text": "a lighthouse"}),
        "3": ("EmptyLatentImage", size),
        "4": ("KSampler", sampler),
        "5": ("VAEDecode", {"samples": ["4", 0], "vae": ["1", 2]}),
        "6": ("PreviewImage", {"images": ["5", 0]}),
    }
    for key, (kind, inputs) in rest.items():
        prompt[key] = {"class_type": kind, "inputs": inputs}
    return prompt


def apply_to_unreached_model() -> Prompt:
    """Token Merge, "11", on a model that passes through."""
    return {
        "1": {"class_type": "UnreachedModel", "inputs": {}},
        "11": {
            "class_type": "TokenMerge",
            "inputs": {"model": ["1", 0], **DEFAULTS["TokenMerge"]},
        },
        "12": {"class_type": "PreviewAny", "inputs": {"source": ["11", 0]}},
    }
