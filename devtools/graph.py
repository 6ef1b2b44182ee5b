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
SD15 = WORKFLOWS / "Faster SD 1.5 at 1024x1024 with Token Downsample.json"
SECOND_PASS = WORKFLOWS / "Faster hires fix second pass with Token Downsample.json"
FLUX = WORKFLOWS / "Faster Flux at 1920x1088 with Token Downsample.json"
Z_IMAGE = WORKFLOWS / "Faster Z-Image Turbo at 1536x1536 with Token Downsample.json"
WAN = WORKFLOWS / "Faster Wan 2.2 video in 4 steps with Token Downsample.json"
LTX = WORKFLOWS / "Faster LTX-2.3 video at 1920x1088 with Token Downsample.json"
COMPARE = WORKFLOWS / "Compare speed with and without Token Downsample.json"
EXAMPLES = (SD15, SECOND_PASS, FLUX, Z_IMAGE, WAN, LTX)
"""There is one for each kind of model: loader, our node, sampler. The file's name is its title."""

OURS = ("TokenMerge", "TokenDownsample", "TokenMergeAdvanced", "TokenDownsampleAdvanced")
LOADER = "CheckpointLoaderSimple"
LORA = "LoraLoaderModelOnly"
SAMPLERS = ("KSampler", "KSamplerAdvanced", "SamplerCustom")
TEXT_ENCODERS = ("CLIPLoader", "DualCLIPLoader", "LTXAVTextEncoderLoader")
KINDS = {"lumina2": "flux", "LTXAVTextEncoderLoader": "wan"}
"""The small model that stands for a kind, or for what a text encoder's loader loads, where it has
another name."""
PARTS = {"UNETLoader": 0, **dict.fromkeys(TEXT_ENCODERS, 1), "VAELoader": 2}
"""These load a model in several files. The value says which output of ``LOADER`` theirs is."""
LEFT_OUT: dict[str, tuple[str, ...]] = {
    LORA: ("model",),
    "LTXVConditioning": ("positive", "negative"),
    "LTXVConcatAVLatent": ("video_latent",),
    "LTXVSeparateAVLatent": ("av_latent",),
    "LTXVAudioVAELoader": (),
    "LTXVEmptyLatentAudio": (),
    "LTXVAudioVAEDecode": (),
    "LatentUpscaleModelLoader": (),
}
"""Small models need no LoRA, make no sound and have no files. The value says which input of such a
node stands for each of its outputs; the other outputs are of no use."""
IN_PLACE: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "EmptyLTXVLatentVideo": (
        "EmptyHunyuanLatentVideo",
        ("width", "height", "length", "batch_size"),
        {},
    ),
    "LTXVLatentUpsampler": (
        "LatentUpscaleBy",
        ("samples",),
        {"upscale_method": "nearest-exact", "scale_by": 2.0},
    ),
    "VAEDecodeTiled": ("VAEDecode", ("samples", "vae"), {}),
}
"""What small models need in place of a node that does not fit their latent or their VAE: its class,
the inputs that it takes over, and the others."""
RUNS, BYPASSED = 0, 4  # the page's modes of a node; bypassed, it passes its inputs through


def load(path: Path) -> dict[str, Any]:
    """A workflow file in the page's format."""
    workflow: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return workflow


def with_only(workflow: dict[str, Any], *kinds: str) -> dict[str, Any]:
    """A copy of a page's workflow in which no node of ours acts but these.

    The others are bypassed, as by Ctrl-B in the page.
    """
    workflow = copy.deepcopy(workflow)
    for node in workflow["nodes"]:
        if node["type"] in OURS:
            node["mode"] = RUNS if node["type"] in kinds else BYPASSED
    return workflow


def bypassed(workflow: dict[str, Any]) -> dict[str, Any]:
    """A copy of a page's workflow with all our nodes bypassed."""
    return with_only(workflow)


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


def with_trained_model(prompt: Prompt, text: str, kind: str = "") -> Prompt:
    """A copy with a small trained model for the loaders, and a prompt it knows.

    kind: of the model; without it, that of the loaders.
    """
    kind = kind or find_kind(prompt)
    prompt = _with_one_loader(_for_small_models(prompt))
    for node in _of(prompt, LOADER):
        node.update(class_type="TokenMergeTrainedModel", inputs={"kind": kind})
    for node in _of(prompt, *SAMPLERS):
        for name, words in (("negative", ""), ("positive", text)):
            _text_of(prompt, node["inputs"][name])["text"] = words
    return prompt


def find_kind(prompt: Prompt) -> str:
    """The small model that stands for the loaders, by what they say of the text encoder."""
    loaders = _of(prompt, *TEXT_ENCODERS)
    types = (node["inputs"].get("type", node["class_type"]) for node in loaders)
    return next((KINDS.get(each, each) for each in types), "unet")


def with_values(prompt: Prompt, nodes: str, **values: object) -> Prompt:
    """A copy in which every node of this class, or the one with this id, has these inputs."""
    prompt = copy.deepcopy(prompt)
    for node in [prompt[nodes]] if nodes in prompt else _of(prompt, nodes):
        node["inputs"].update(values)
    return prompt


def with_frames(prompt: Prompt) -> Prompt:
    """A copy that saves the frames of its video as pictures, which lose nothing."""
    prompt = copy.deepcopy(prompt)
    for node in _of(prompt, "SaveVideo"):
        source, _ = node["inputs"]["video"]
        frames = prompt.pop(source)["inputs"]["images"]
        node.update(class_type="SaveImage", inputs={"images": frames, "filename_prefix": "frames"})
    return prompt


def _for_small_models(prompt: Prompt) -> Prompt:
    """A copy with the nodes that a small model can be run with."""
    prompt = copy.deepcopy(prompt)
    for node in _of(prompt, *IN_PLACE):
        kind, kept, others = IN_PLACE[node["class_type"]]
        inputs = {name: node["inputs"][name] for name in kept}
        node.update(class_type=kind, inputs={**inputs, **others})
    left_out = {key: node for key, node in prompt.items() if node["class_type"] in LEFT_OUT}
    prompt = {key: node for key, node in prompt.items() if key not in left_out}
    for node in prompt.values():
        found = {name: _look_through(value, left_out) for name, value in node["inputs"].items()}
        node["inputs"] = {name: value for name, value in found.items() if value is not None}
    return prompt


def _look_through(value: Any, left_out: Prompt) -> Any:
    """What an input reads where these nodes are left out; None where it is of no use."""
    while isinstance(value, list) and value[0] in left_out:
        node, output = left_out[value[0]], value[1]
        names = LEFT_OUT[node["class_type"]]
        value = node["inputs"][names[output]] if output < len(names) else None
    return value


def _with_one_loader(prompt: Prompt) -> Prompt:
    """A copy in which a model in several files is loaded as a checkpoint is."""
    prompt = copy.deepcopy(prompt)
    parts = {key: node["class_type"] for key, node in prompt.items() if node["class_type"] in PARTS}
    whole = (key for key, node in prompt.items() if node["class_type"] in (LOADER, "UNETLoader"))
    first = next(whole, None)
    if first is None:
        return prompt
    for node in prompt.values():
        for name, value in node["inputs"].items():
            if isinstance(value, list) and value[0] in parts:
                node["inputs"][name] = [first, PARTS[parts[value[0]]]]
    prompt[first]["class_type"] = LOADER
    return {key: node for key, node in prompt.items() if key == first or key not in parts}


def _text_of(prompt: Prompt, source: list[Any]) -> dict[str, Any]:
    """Inputs of the node that encodes the text of a conditioning, behind nodes that change it."""
    inputs = prompt[source[0]]["inputs"]
    return inputs if "text" in inputs else _text_of(prompt, inputs["conditioning"])


def _of(prompt: Prompt, *kinds: str) -> list[dict[str, Any]]:
    return [node for node in prompt.values() if node["class_type"] in kinds]
