"""Where the published results lie."""

from __future__ import annotations

from pathlib import Path

from .regimes import DEFAULT, Regime

HERE = Path(__file__).absolute().parent
SPEED_RESULTS = HERE.parent / "speed" / "results" / "amd-epyc"
"""Where the benchmark's speed-ups on full-width SD 1.5 are."""


def find_results(kind: str, tokens: int) -> Path:
    """Of pictures with this many tokens a side."""
    prefix = "" if kind == "unet" else f"{kind}-"
    return HERE / "results" / f"{prefix}{tokens}x{tokens}-tokens"


def of_regime(folder: Path, regime: Regime) -> Path:
    """Within the model's folder; that folder itself for the default regime."""
    return folder if regime == DEFAULT else folder / regime.name
