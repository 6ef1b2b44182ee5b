"""Where the published files lie."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).absolute().parent
WEIGHTS = {
    "unet": HERE / "weights" / "scenes.safetensors",
    "flux": HERE / "weights" / "flux" / "scenes.safetensors",
}
"""By kind of network."""
SPEED_RESULTS = HERE.parent / "results" / "amd-epyc"
"""Where the benchmark's speed-ups on full-width SD 1.5 are."""


def training_log(weights: Path) -> Path:
    """The loss of every step, beside the weights."""
    return weights.with_name("training.json")


def results(kind: str, tokens: int) -> Path:
    """Of pictures with this many tokens a side."""
    prefix = "" if kind == "unet" else f"{kind}-"
    return HERE / "results" / f"{prefix}{tokens}x{tokens}-tokens"
