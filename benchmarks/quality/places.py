"""Where the published files lie."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).absolute().parent
WEIGHTS = HERE / "weights" / "scenes.safetensors"
SPEED_RESULTS = HERE.parent / "results" / "amd-epyc"
"""Where the benchmark's speed-ups on full-width SD 1.5 are."""


def training_log(weights: Path) -> Path:
    """The loss of every step, beside the weights."""
    return weights.with_name("training.json")


def results(tokens: int) -> Path:
    """Of pictures with this many tokens a side."""
    return HERE / "results" / f"{tokens}x{tokens}-tokens"
