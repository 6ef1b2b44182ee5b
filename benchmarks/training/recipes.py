"""How large the models are, and how the minutes of one training are spent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..trained import autoencoder
from ..trained.flux import FluxShape
from ..trained.network import Shape
from ..trained.unet import UNetShape
from ..trained.wan import WanShape

CHANNELS = autoencoder.CHANNELS


@dataclass(frozen=True)
class Stage:
    """tokens: a side. batch: pictures or clips a step. share: of the model's time. frames: of a
    clip, all by default; a model of clips learns from single ones first what is seen.
    """

    tokens: int
    batch: int
    share: float
    frames: int | None = None


@dataclass(frozen=True)
class Recipe:
    """stages: few tokens first, more later. share: of all the time. frames: of a clip, 1 for
    pictures. subjects: so many emoji; fewer are learned better. variety: of sizes and places, see
    ``compose``. shift: of the noise levels, beside the one that the model samples with; above 1
    more of them are high, where the layout is decided (Esser et al., arXiv 2403.03206, eq. 23).
    teacher: the model that it is distilled from, at the cfg ``guidance``. compile: whether it pays
    on a GPU.
    """

    shape: Shape
    stages: tuple[Stage, ...]
    share: float
    rate: float = 1e-3
    frames: int = 1
    subjects: int = 120
    variety: float = 1.0
    shift: float = 1.0
    teacher: str = ""
    guidance: float = 1.0
    compile: bool = True

    @property
    def moving(self) -> bool:
        return self.frames > 1

    def find_stage(self, progress: float) -> Stage:
        """progress: from 0 to 1."""
        end = 0.0
        for stage in self.stages:
            end += stage.share
            if progress < end:
                return stage
        return self.stages[-1]

    def fit(self, tokens: int | None, batch: int | None) -> Recipe:
        """Without stages of more tokens, and with smaller batches. None: no limit."""
        stages = [one for one in self.stages if one.tokens <= (tokens or one.tokens)]
        whole = sum(one.share for one in stages)
        if not stages:
            fewest = min(one.tokens for one in self.stages)
            raise RuntimeError(f"tokens is {tokens}, expected {fewest} or more")
        fitted = [
            replace(one, batch=min(one.batch, batch or one.batch), share=one.share / whole)
            for one in stages
        ]
        return replace(self, stages=tuple(fitted))

    def shrink(self) -> Recipe:
        """So small that every part runs in seconds on a CPU."""
        small: dict[str, Shape] = {
            "unet": UNetShape(64, channels=CHANNELS),
            "wan": WanShape(1, 2, CHANNELS),
        }
        stages = tuple(replace(one, tokens=one.tokens // 8, batch=2) for one in self.stages)
        shape = small.get(self.shape.kind, FluxShape(1, 1, 1, CHANNELS))
        return replace(self, shape=shape, stages=stages)


_FLUX = FluxShape(4, 2, 4, CHANNELS)
ON_GPU = {
    "unet": Recipe(
        UNetShape(64, channels=CHANNELS),
        (Stage(16, 256, 0.2), Stage(32, 128, 0.4), Stage(64, 48, 0.4)),
        share=0.26,
        rate=2e-3,
        shift=2.0,
        compile=False,
    ),
    "flux": Recipe(
        _FLUX,
        (Stage(16, 256, 0.3), Stage(32, 96, 0.38), Stage(64, 32, 0.32)),
        share=0.34,
        rate=3e-3,
        shift=3.0,
    ),
    "wan": Recipe(
        WanShape(4, 6, CHANNELS),
        (Stage(16, 32, 0.55), Stage(32, 12, 0.45)),
        share=0.28,
        rate=3e-3,
        frames=9,
        subjects=40,
    ),
    "flux-4-steps": Recipe(
        _FLUX,
        (Stage(64, 32, 1.0),),
        share=0.12,
        rate=2e-4,
        teacher="flux",
        guidance=3.0,
        compile=False,
    ),
}
"""By model, in the order of training: a teacher comes before its student."""

_NARROW_FLUX = FluxShape(3, 2, 4, CHANNELS)
_OF_CPU: dict[str, dict[str, Any]] = {
    "unet": {
        "stages": (Stage(16, 16, 0.15), Stage(32, 8, 0.3), Stage(64, 3, 0.55)),
        "shift": 4.0,
    },
    "flux": {
        "shape": _NARROW_FLUX,
        "stages": (Stage(16, 16, 0.35), Stage(32, 6, 0.25), Stage(64, 2, 0.4)),
    },
    "wan": {
        "shape": WanShape(3, 4, CHANNELS),
        "stages": (Stage(16, 16, 0.4, frames=1), Stage(16, 2, 0.35), Stage(32, 1, 0.25)),
    },
    "flux-4-steps": {
        "shape": _NARROW_FLUX,
        "stages": (Stage(32, 6, 0.5), Stage(64, 2, 0.5)),
        "rate": 5e-4,
    },
}
_OF_ALL = {"subjects": 8, "variety": 0.3}
ON_CPU = {name: replace(recipe, **(_OF_ALL | _OF_CPU[name])) for name, recipe in ON_GPU.items()}
"""A processor is far slower: narrower models learn fewer subjects in much the same places, and more
of the time goes to few tokens."""
