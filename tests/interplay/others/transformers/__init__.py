"""Other nodes on the small Flux and Wan, one file for each group of them.

What needs nothing of these models is tried on the UNets too.
"""

from ...other import Other
from . import (
    caches,
    conditioning,
    guidance,
    masks,
    models,
    overrides,
    references,
    sampling,
    unet_nodes,
    videos,
    weights,
    windows,
    wrappers,
)

OTHERS: tuple[Other, ...] = (
    *guidance.OTHERS,
    *weights.OTHERS,
    *sampling.OTHERS,
    *caches.OTHERS,
    *windows.OTHERS,
    *conditioning.OTHERS,
    *masks.OTHERS,
    *models.OTHERS,
    *references.OTHERS,
    *videos.OTHERS,
    *overrides.OTHERS,
    *wrappers.OTHERS,
    *unet_nodes.OTHERS,
)
