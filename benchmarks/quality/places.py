"""Where the published results lie."""

from __future__ import annotations

import re
from pathlib import Path

from .regimes import DEFAULT, Regime

HERE = Path(__file__).absolute().parent
SPEED_RESULTS = HERE.parent / "speed" / "results" / "amd-epyc-avx512"
"""Where the benchmark's speed-ups on full-width SD 1.5 are."""

CLIP_FRAMES = 9
"""``trained.motion.FRAMES``, which is not to be imported for a folder's name."""


def find_results(model: str, tokens: int) -> Path:
    """Of pictures, or of clips' frames, with this many tokens a side."""
    return HERE / "results" / f"{_prefix(model)}{tokens}x{tokens}-tokens"


def list_results(folder: Path, model: str) -> list[Path]:
    """Within ``folder``, of this model's pictures of every size."""
    name = re.compile(re.escape(_prefix(model)) + r"\d+x\d+-tokens")
    return sorted(place for place in folder.glob("*-tokens") if name.fullmatch(place.name))


def _prefix(model: str) -> str:
    return {"unet": "", "wan": f"wan-{CLIP_FRAMES}x"}.get(model, f"{model}-")


def of_regime(folder: Path, regime: Regime) -> Path:
    """Within the model's folder; that folder itself for the default regime."""
    return folder if regime == DEFAULT else folder / regime.name
