"""What happens after each step: its time is taken, the page shows it, an interrupt ends the run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from comfy.model_management import throw_exception_if_processing_interrupted
from torch import Tensor

from ..hooks.waiting import wait_for
from .sampling import StepCallback


@dataclass
class StepWatch:
    """The callback of one run.

    Args:
        show: ComfyUI's own callback: latent preview and progress bar.
        done: steps of the runs before this one.
        steps: of this run.
        total: steps of all runs.
        seconds: from each prediction to the next one, without the time that ``show`` takes. So
            there is one less than there are steps: what precedes the first prediction is not
            sampling alone, but loading the model too.
    """

    show: StepCallback
    done: int
    steps: int
    total: int
    seconds: list[float] = field(default_factory=list)
    _resumed: float | None = None

    def __call__(self, step: int, prediction: Tensor, latent: Tensor, steps: int) -> None:
        wait_for(prediction)
        now = time.perf_counter()
        if self._resumed is not None:
            self.seconds.append(now - self._resumed)
        throw_exception_if_processing_interrupted()
        # Samplers that choose their own steps may take more of them.
        self.show(self.done + min(step, self.steps - 1), prediction, latent, self.total)
        wait_for(prediction)
        self._resumed = time.perf_counter()
