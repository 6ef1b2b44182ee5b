"""What is compared with the plain model, by kind of network."""

from __future__ import annotations

from . import flux_variants, unet_variants
from .patches import Variant


def variants(kind: str) -> list[Variant]:
    """In the order of measuring: where time runs out, the last are missing."""
    of_kind = {"unet": unet_variants.variants, "flux": flux_variants.variants}
    return of_kind[kind]()
