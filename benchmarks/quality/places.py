"""Where the published results lie."""

from __future__ import annotations

from pathlib import Path

from ..trained.places import TOKENS

RESULTS = Path(__file__).absolute().parent / "results"
SPEED_RESULTS = RESULTS.parents[1] / "speed" / "results" / "nvidia-h200"
"""The times of full-width models are here."""
PLOTS = RESULTS.parents[2] / "docs" / "images" / "quality.png"


def find_results(model: str, tokens: int) -> Path:
    """Of pictures, or of clips' frames, with this many tokens a side; a folder for each regime."""
    size = "" if tokens == TOKENS[model] else f"-{tokens}x{tokens}-tokens"
    return RESULTS / f"{model}{size}"
