"""What is compared with the unpatched model, by model."""

from __future__ import annotations

from functools import partial

from .. import ours, peers
from ..settings import DOWNSAMPLE, MERGE_ALL, MERGE_QUERIES, RATIO
from ..trained.places import DISTILLED, find_kind
from . import rivals
from .patches import ALL_STEPS, Patch, PictureVariant, downsample, merge, seedless, windows
from .regimes import Regime
from .yardsticks import list_fewer_steps, list_steps

FINEST = 1
"""The trained UNet has self-attention at full latent resolution."""
MERGE_BY_DEFAULT: Patch = partial(ours.apply, "TokenMergeAdvanced")

ON_UNETS: dict[str, Patch] = {
    "Token Downsample ×2": downsample(2),
    "Token Downsample ×2, interleaved": downsample(2, method="interleaved"),
    "Token Merge 0.2": MERGE_BY_DEFAULT,
    "Token Merge 0.5": merge(),
    "Token Merge 0.5, queries": merge(MERGE_QUERIES.target),
}
PEERS: dict[str, Patch] = {
    "ToDo ×2": seedless(partial(peers.todo, setting=DOWNSAMPLE, finest=FINEST)),
    "tomesd 0.5": partial(peers.tomesd, setting=MERGE_ALL, finest=FINEST),
    "ComfyUI's HyperTile": seedless(partial(peers.hypertile, finest=FINEST)),
    "TomePatchModel 0.5": seedless(partial(peers.comfyui_tome, ratio=RATIO)),
}
"""They know UNets alone."""
REDUCED_EARLY = {"exact_early_steps": False}
BY_DEFAULT = "Token Downsample ×2, window"
ON_TRANSFORMERS: dict[str, Patch] = {
    BY_DEFAULT: windows(2),
    "Token Downsample ×4, window": windows(4),
    "Token Merge 0.2, window": MERGE_BY_DEFAULT,
    f"{BY_DEFAULT}, {ALL_STEPS}": windows(2, **REDUCED_EARLY),
    f"Token Downsample ×4, window, {ALL_STEPS}": windows(4, **REDUCED_EARLY),
    f"Token Merge 0.2, window, {ALL_STEPS}": partial(MERGE_BY_DEFAULT, **REDUCED_EARLY),
    "Token Downsample ×2": downsample(2),
    "Token Merge 0.5": merge(),
}


def list_variants(model: str, regime: Regime) -> list[PictureVariant]:
    """Fewer steps, then our nodes, then the peers.

    Without EasyCache, whose thresholds have to be found first: see ``yardsticks``.
    """
    steps = list_fewer_steps if model in DISTILLED else list_steps
    kind = find_kind(model)
    of_ours = ON_UNETS if kind == "unet" else ON_TRANSFORMERS
    of_peers = {"unet": PEERS, "flux": rivals.ON_FLUX, "wan": rivals.ON_WAN}[kind]
    if kind != "unet":
        in_int8 = rivals.put_beside_int8(of_ours[BY_DEFAULT], of_peers)
        of_ours = of_ours | {f"{BY_DEFAULT}, in INT8": in_int8}
    return [
        *steps(regime),
        *(PictureVariant(name, "ours", patch) for name, patch in of_ours.items()),
        *(PictureVariant(name, "peer", patch) for name, patch in of_peers.items()),
    ]
