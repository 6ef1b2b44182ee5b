"""What people would do instead of using our nodes: take fewer steps, or leave some to a cache."""

from __future__ import annotations

from functools import partial

from comfy.model_patcher import ModelPatcher

from .. import peers
from .patches import ALL_STEPS, Patch, PictureVariant, chain, downsample, seedless
from .regimes import Regime

FEWER_STEPS = {20: (17, 13, 10, 8), 8: (7, 6, 5, 4), 4: (3, 2)}
"""For the steps of the regime, so many are tried."""
SHARES = (85, 70, 50)
"""EasyCache is to leave so many per cent of the calls."""


def _keep(model: ModelPatcher) -> ModelPatcher:
    return model.clone()


UNPATCHED = PictureVariant("unpatched", "yardstick", seedless(_keep))

CACHED: dict[str, Patch] = {
    "": UNPATCHED.patch,
    f"Downsample ×2, {ALL_STEPS}": downsample(2, method="interleaved", local_window="auto"),
}
"""EasyCache is put behind these. Each has the name that is shown."""


def list_fewer_steps(regime: Regime) -> list[PictureVariant]:
    """The unpatched model with fewer steps. The schedule is made anew for each."""
    return [
        PictureVariant(f"{UNPATCHED.name}, {steps} steps", "yardstick", UNPATCHED.patch, steps)
        for steps in FEWER_STEPS.get(regime.steps, ())
    ]


def cache(threshold: float) -> Patch:
    """ComfyUI's EasyCache."""
    return seedless(partial(peers.easy_cache, threshold=threshold))


def name_share(share: int, before: str) -> str:
    """Of what EasyCache leaves, in per cent, behind one of ``CACHED``."""
    return f"({share} %){before and ', '}{before}"


def name_cache(threshold: float, share: str) -> str:
    """Of EasyCache that leaves a share, see ``name_share``."""
    return f"EasyCache {threshold:g} {share}"


def list_caches(thresholds: dict[str, float]) -> list[PictureVariant]:
    """EasyCache with these thresholds, by the names of their shares."""
    named = [
        (name_share(share, before), patch) for before, patch in CACHED.items() for share in SHARES
    ]
    return [
        PictureVariant(
            name_cache(thresholds[name], name),
            "yardstick",
            chain(patch, cache(thresholds[name])),
        )
        for name, patch in named
        if name in thresholds
    ]
