"""Where the trained weights lie."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).absolute().parent / "weights"
WEIGHTS = {
    "unet": FOLDER / "scenes.safetensors",
    "flux": FOLDER / "flux" / "scenes.safetensors",
    "wan": FOLDER / "wan" / "scenes.safetensors",
    "flux-4-steps": FOLDER / "flux-4-steps" / "scenes.safetensors",
}
"""The key is the model's name, which is its kind of network unless it was distilled."""
DISTILLED = {"flux-4-steps": "flux"}
"""These models were distilled to few steps. The value is their kind of network."""


def find_kind(model: str) -> str:
    """Of network."""
    return DISTILLED.get(model, model)
