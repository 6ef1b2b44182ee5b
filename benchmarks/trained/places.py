"""Where the trained weights lie."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).absolute().parent / "weights"
WEIGHTS = {
    "unet": FOLDER / "scenes.safetensors",
    "flux": FOLDER / "flux" / "scenes.safetensors",
    "wan": FOLDER / "wan" / "scenes.safetensors",
    "flux-4-steps": FOLDER / "flux-4-steps" / "scenes.safetensors",
    "flux-emoji": FOLDER / "flux-emoji" / "emoji.safetensors",
}
"""By the model's name. The scenes show drawn shapes."""
DISTILLED = ("flux-4-steps",)
"""These models were distilled to few steps."""


def find_kind(model: str) -> str:
    """Of network."""
    return model.partition("-")[0]
