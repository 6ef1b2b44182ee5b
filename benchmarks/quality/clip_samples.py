"""What the trained video model makes of captions that it was not trained on, as one picture."""

from __future__ import annotations

from pathlib import Path

from ..trained import weights
from ..trained.places import WEIGHTS, find_training_log
from . import curves, sheets, yardsticks
from .clip_session import HeldOut, make_batches, make_clips
from .regimes import DEFAULT

SAMPLES = 16
TOKENS = 16
SHOWN = slice(None, None, 2)
"""Of the frames: every second one."""


def draw(kept: Path, weights_file: Path = WEIGHTS["wan"]) -> list[Path]:
    """The training loss and samples, beside the weights. kept: folder of the drawn clips."""
    batches = make_batches(kept, SAMPLES, TOKENS, DEFAULT)
    made, _ = make_clips(weights.load(weights_file), yardsticks.PLAIN, batches, DEFAULT)
    captions = HeldOut.load(kept, SAMPLES, TOKENS, DEFAULT).captions
    return [
        curves.training_loss(find_training_log(weights_file), weights_file.with_name("loss.png")),
        sheets.clip_sheet(made[:, :, SHOWN], captions, weights_file.with_name("samples.png")),
    ]
