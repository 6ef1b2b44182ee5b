"""What is compared with the unpatched model, by model."""

from __future__ import annotations

from functools import partial

from .. import ours, peers
from ..settings import DOWNSAMPLE, MERGE_ALL, RATIO
from ..trained.places import find_kind
from . import rivals
from .patches import (
    ALL_STEPS,
    DOWNSAMPLE_BY_DEFAULT,
    MERGE_BY_DEFAULT,
    Patch,
    PictureVariant,
    downsample,
    merge,
    seedless,
    windows,
)
from .regimes import Regime
from .yardsticks import list_fewer_steps

FINEST = 1
"""The trained UNet has self-attention at full latent resolution."""
MERGE: Patch = partial(ours.apply, "TokenMergeAdvanced")

ON_UNETS: dict[str, Patch] = {
    DOWNSAMPLE_BY_DEFAULT: downsample(2, method="interleaved"),
    "Token Downsample ×4": downsample(4, method="interleaved"),
    "Token Downsample ×2, stratified": downsample(2),
    MERGE_BY_DEFAULT: MERGE,
    "Token Merge 0.5": merge(),
}
PEERS: dict[str, Patch] = {
    "ToDo ×2": seedless(partial(peers.todo, setting=DOWNSAMPLE, finest=FINEST)),
    "tomesd 0.5": partial(peers.tomesd, setting=MERGE_ALL, finest=FINEST),
    "ComfyUI's HyperTile": seedless(partial(peers.hypertile, finest=FINEST)),
    "TomePatchModel 0.5": seedless(partial(peers.comfyui_tome, ratio=RATIO)),
}
"""They know UNets alone."""
ON_TRANSFORMERS: dict[str, Patch] = {
    DOWNSAMPLE_BY_DEFAULT: windows(2),
    "Token Downsample ×4": windows(4),
    MERGE_BY_DEFAULT: MERGE,
    f"Token Downsample ×2, {ALL_STEPS}": windows(2, exact_early_steps=False),
    "Token Downsample ×2, no local windows": downsample(2),
    "Token Merge 0.5": merge(),
}
IN_INT8 = "Token Downsample ×2 in INT8"


def list_variants(model: str, regime: Regime) -> list[PictureVariant]:
    """Fewer steps, then our nodes, then the peers.

    Without EasyCache, whose thresholds have to be found first: see ``yardsticks``.
    """
    kind = find_kind(model)
    of_ours = ON_UNETS if kind == "unet" else ON_TRANSFORMERS
    of_peers = {"unet": PEERS, "flux": rivals.ON_FLUX, "wan": rivals.ON_WAN}[kind]
    if kind != "unet":
        in_int8 = rivals.put_beside_int8(of_ours[DOWNSAMPLE_BY_DEFAULT], of_peers)
        of_ours = of_ours | {IN_INT8: in_int8}
    return [
        *list_fewer_steps(regime),
        *(PictureVariant(name, "ours", patch) for name, patch in of_ours.items()),
        *(PictureVariant(name, "peer", patch) for name, patch in of_peers.items()),
    ]
