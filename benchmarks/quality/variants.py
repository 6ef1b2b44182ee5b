"""What is compared with the plain model, by kind of network."""

from __future__ import annotations

from . import flux_variants, unet_variants, wan_variants, yardsticks
from .patches import PictureVariant
from .regimes import Regime


def list_variants(kind: str, regime: Regime) -> list[PictureVariant]:
    """In the order of measuring: where time runs out, the last are missing.

    Without EasyCache, whose thresholds have to be found first: see ``yardsticks``.
    """
    of_kind = {
        "unet": unet_variants.list_variants,
        "flux": flux_variants.list_variants,
        "wan": wan_variants.list_variants,
    }
    return [*yardsticks.list_steps(regime), *of_kind[kind]()]
