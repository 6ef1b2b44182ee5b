"""Where the published results lie."""

from __future__ import annotations

from pathlib import Path

RESULTS = Path(__file__).absolute().parent / "results"
SPEED_RESULTS = RESULTS.parents[1] / "speed" / "results" / "nvidia-h200"
"""The times of full-width models are here."""
PLOTS = RESULTS.parents[2] / "docs" / "images" / "quality.png"

CLIP_FRAMES = 9
"""This is ``trained.motion.FRAMES``, which is not to be imported for a folder's name."""


def find_results(model: str, tokens: int, first: int = 0) -> Path:
    """Of pictures, or of clips' frames, with this many tokens a side; a folder for each regime.

    first: seed of the first picture.
    """
    prefix = {"unet": "", "wan": f"wan-{CLIP_FRAMES}x"}.get(model, f"{model}-")
    others = f"-from-{first}" if first else ""
    return RESULTS / f"{prefix}{tokens}x{tokens}-tokens{others}"
