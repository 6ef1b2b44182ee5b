"""What is compared with the plain model, by kind of network."""

from __future__ import annotations

from . import flux_variants, unet_variants
from .patches import PictureVariant


def list_variants(kind: str) -> list[PictureVariant]:
    """In the order of measuring: where time runs out, the last are missing."""
    of_transformer = flux_variants.list_variants
    of_kind = {
        "unet": unet_variants.list_variants,
        "flux": of_transformer,
        "wan": of_transformer,
    }
    return of_kind[kind]()
