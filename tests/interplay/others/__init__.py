"""The other nodes, one file for each group of them."""

from ..other import Other
from . import (
    attention,
    conditioning,
    controls,
    guidance,
    schedule,
    transformers,
    unet_features,
    weights,
    wrappers,
)

OTHERS: tuple[Other, ...] = (
    *weights.OTHERS,
    *attention.OTHERS,
    *guidance.OTHERS,
    *unet_features.OTHERS,
    *schedule.OTHERS,
    *conditioning.OTHERS,
    *controls.OTHERS,
    *wrappers.OTHERS,
    *transformers.OTHERS,
)
