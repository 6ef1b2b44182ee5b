"""Where the trained weights lie."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).absolute().parent / "weights"
WEIGHTS = {name: FOLDER / f"{name}.safetensors" for name in ("unet", "flux", "wan", "flux-4-steps")}
"""By the model's name."""
TOKENS = {"unet": 64, "flux": 64, "wan": 32, "flux-4-steps": 64}
"""They were trained with so many a side, in the end."""


def find_kind(model: str) -> str:
    """Of network."""
    return model.partition("-")[0]
