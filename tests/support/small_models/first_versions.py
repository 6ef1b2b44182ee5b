"""Which small models an older ComfyUI lacks, or tells too little of, by name.

The versions are the first ones of those that ``devtools matrix`` tests. Models that are not named
are in all of them.
"""

from __future__ import annotations

from ..comfyui_version import leave_out_before

FIRST_VERSIONS = {
    "Boogu": "0.26.0",
    "Boogu with references": "0.26.0",
    "Chroma Radiance": "0.24.1",
    "CogVideoX": "0.24.1",
    "CogVideoX 1.5": "0.24.1",
    "ERNIE-Image": "0.20.1",
    "HiDream-O1": "0.24.1",
    "HiDream-O1 with a reference": "0.24.1",
    "Ideogram 4": "0.24.1",
    "JoyImage": "0.30.0",
    "JoyImage with references": "0.30.0",
    "Krea 2": "0.26.0",
    "Krea 2 with references": "0.30.0",
    "Lens": "0.24.1",
    "MageFlow": "0.30.0",
    "MageFlow with references": "0.30.0",
    "MiniMax H3": "0.30.0",
    "MiniMax H3 with references": "0.30.0",
    "PiD": "0.24.1",
    "PixelDiT": "0.24.1",
    "SeedVR2": "0.30.0",
    "Wan Animate 2": "0.33.0",
    "Wan SCAIL 2": "0.26.0",
    "Wan with references last": "0.26.0",
    "Wan, autoregressive": "0.24.1",
    "WanDancer": "0.24.1",
}
"""This version is the first that has the model as it is built here."""

REFERENCES_TOLD = {
    "Flux Kontext": "0.18.2",
    "Flux 2 with references": "0.18.2",
    "Flux 2 with references at timestep zero": "0.18.2",
    "Qwen-Image Edit": "0.18.2",
    "Qwen-Image Layered": "0.18.2",
}
"""This version is the first that tells nodes where the references are; see
tests/transformers/test_untold.py."""

BLOCKS_TOLD = {
    "Anima": "0.30.0",
    "Cosmos Predict2": "0.30.0",
    "Krea 2": "0.30.0",
}
"""This version is the first that tells nodes which block is running; see there too."""


def leave_out_if_lacking(name: str) -> None:
    """End the test here where this ComfyUI is older than the model of that name needs."""
    for versions, what in (
        (FIRST_VERSIONS, name),
        (REFERENCES_TOLD, f"the places of references in {name}"),
        (BLOCKS_TOLD, f"the numbers of blocks in {name}"),
    ):
        model = name.removesuffix(" alone")  # the same one with a prompt and nothing else
        if model in versions:
            leave_out_before(versions[model], what)
