"""Where the trained weights lie."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).absolute().parent / "weights"
WEIGHTS = {
    "unet": FOLDER / "scenes.safetensors",
    "flux": FOLDER / "flux" / "scenes.safetensors",
    "wan": FOLDER / "wan" / "scenes.safetensors",
}
"""By kind of network."""


def find_training_log(weights: Path) -> Path:
    """The loss of every step, beside the weights."""
    return weights.with_name("training.json")
