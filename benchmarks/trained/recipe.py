"""What decides the weights, together with the data: how long, how fast and on how much."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR


@dataclass(frozen=True)
class Stage:
    """tokens: a side. batch: pictures or clips a step. frames: of a clip; a picture has one."""

    tokens: int
    batch: int
    steps: int
    frames: int = 1


@dataclass(frozen=True)
class Recipe:
    """Few tokens first, more later.

    warm_up: steps. ema: decay of the averaged weights, which are the ones that are kept.
    without_caption: share of the pictures that the model is to predict unprompted. shift: of the
    noise levels that are trained on; above 1 more of them are high, where the layout is decided
    (Esser et al., arXiv 2403.03206, eq. 23). A distilled model has levels of its own.
    """

    stages: tuple[Stage, ...]
    rate: float = 1e-3
    last_rate: float = 3e-5
    warm_up: int = 100
    ema: float = 0.995
    without_caption: float = 0.1
    shift: float = 1.0
    seed: int = 0

    @property
    def steps(self) -> int:
        return sum(stage.steps for stage in self.stages)

    def find_stage(self, step: int) -> Stage:
        for stage in self.stages:
            if step < stage.steps:
                return stage
            step -= stage.steps
        raise IndexError(f"the recipe has {self.steps} steps")

    def schedule_rate(self, optimizer: Optimizer) -> SequentialLR:
        """A linear warm-up, then half a cosine. optimizer: its rate is ``rate``."""
        warm_up = LinearLR(optimizer, 1 / self.warm_up, total_iters=self.warm_up - 1)
        falling = CosineAnnealingLR(optimizer, self.steps - self.warm_up, self.last_rate)
        return SequentialLR(optimizer, [warm_up, falling], milestones=[self.warm_up])

    def shift_levels(self, levels: Tensor) -> Tensor:
        """Noise levels in [0, 1], evenly distributed before."""
        return self.shift * levels / (1 + (self.shift - 1) * levels)

    def find_decay(self, averaged: int) -> float:
        """Of the average when it holds so many weights: short at first, so that they are soon
        forgotten.
        """
        return min(self.ema, averaged / (9 + averaged))


ON_CPU = {
    "unet": (Recipe((Stage(16, 32, 700), Stage(32, 8, 1300), Stage(64, 2, 400)), ema=0.997),),
    "flux": (
        Recipe((Stage(16, 32, 750), Stage(32, 8, 600)), ema=0.997),
        Recipe((Stage(16, 32, 900), Stage(32, 8, 500)), warm_up=50, ema=0.998, seed=1),
        Recipe(
            (Stage(16, 32, 600), Stage(32, 8, 750), Stage(64, 2, 100)),
            warm_up=50,
            ema=0.998,
            shift=3.0,
            seed=2,
        ),
        Recipe(
            (Stage(16, 32, 300), Stage(32, 8, 900), Stage(64, 2, 100)),
            warm_up=50,
            ema=0.998,
            shift=3.0,
            seed=3,
        ),
    ),
    "wan": (Recipe((Stage(8, 16, 800, 5), Stage(12, 4, 500, 9), Stage(16, 4, 220, 9)), ema=0.997),),
}
"""By kind of network; for one or two cores. Those of the Flux take about six hours, the others an
hour or so. Parts follow one another: each starts from the averaged weights of the one before, and
its rate rises and falls anew."""
ON_GPU = (Recipe((Stage(32, 256, 6000), Stage(64, 128, 4000)), ema=0.999),)
DISTILLED = {
    "flux-4-steps": Recipe(
        (Stage(16, 32, 120), Stage(32, 8, 380), Stage(64, 2, 40)),
        rate=3e-4,
        last_rate=1e-5,
        warm_up=20,
        ema=0.99,
    ),
}
"""By model, of those that are distilled; for two cores and an hour and a half."""
