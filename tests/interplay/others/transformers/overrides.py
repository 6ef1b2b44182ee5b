"""Nodes that set the attention function."""

from __future__ import annotations

from dataclasses import replace

from support.small_models import SmallModel
from support.small_models.image_settings import FLUX as FLUX_SETTINGS
from support.small_models.images import pooled
from support.small_models.video_settings import WAN as WAN_SETTINGS
from support.small_models.videos import FLAT

from ...kinds import FLUX, WAN
from ...other import Limit, Other
from ..attention import SAGE, WITHOUT_WEIGHTS, as_on_a_gpu, patch_sage

WIDE = {
    "Flux": SmallModel(
        "Flux with heads of 64",
        FLUX.config,
        {**FLUX_SETTINGS, "hidden_size": 128, "axes_dim": [16, 24, 24]},
        16,
        FLUX.patch,
        24,
        pooled,
    ),
    "Wan": SmallModel(
        "Wan with heads of 64", WAN.config, {**WAN_SETTINGS, "dim": 128}, 16, FLAT, 24
    ),
}
"""These are for attention that accepts heads of 64 and 128 channels."""
NOT_WEIGHED = Limit(
    "works in part",
    "proportional_attention is left out where another node",
    "the keys that remain are not weighed by how many they stand for: it takes no mask",
)
WINDOWS_ALONE = Limit(
    "works in part",
    "in local windows beside SageAttention",
    "every attention of this model is computed in local windows, beside which it has no effect",
    modes=("local window",),
    hides_other=True,
)
SAGE_LIMITS = {
    "Flux": (WINDOWS_ALONE, NOT_WEIGHED),
    # Without a prompt beside the picture, keys that all stand for as many tokens need no weights.
    "Wan": (replace(NOT_WEIGHED, modes=("merged keys",)),),
}
OTHERS = (
    *(
        Other(
            SAGE,
            (kind,),
            patch_sage,
            build=family.build,
            situation=as_on_a_gpu,
            # Without its window, too: an error of 0.17 instead of 0.05 on Flux.
            most_error=WITHOUT_WEIGHTS,
            limits=SAGE_LIMITS[kind],
        )
        for kind, family in WIDE.items()
    ),
)
