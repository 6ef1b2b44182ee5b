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
"""By the model's name, which is its kind of network unless it was distilled."""
TEACHERS = {"flux-4-steps": "flux"}
"""Of the models that were distilled: which one each was distilled from."""


def find_kind(model: str) -> str:
    """Of network."""
    return TEACHERS.get(model, model)


def find_training_log(weights: Path) -> Path:
    """The loss of every step, beside the weights."""
    return weights.with_name("training.json")
