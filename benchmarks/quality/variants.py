"""What is compared with the plain model, by model."""

from __future__ import annotations

from ..trained.places import TEACHERS, find_kind
from . import flux_variants, unet_variants, wan_variants
from .patches import PictureVariant
from .regimes import Regime
from .yardsticks import list_fewer_steps, list_steps


def list_variants(model: str, regime: Regime) -> list[PictureVariant]:
    """In the order of measuring: where time runs out, the last are missing.

    Without EasyCache, whose thresholds have to be found first: see ``yardsticks``.
    """
    of_kind = {
        "unet": unet_variants.list_variants,
        "flux": flux_variants.list_variants,
        "wan": wan_variants.list_variants,
    }
    steps = list_fewer_steps if model in TEACHERS else list_steps
    return [*steps(regime), *of_kind[find_kind(model)]()]
