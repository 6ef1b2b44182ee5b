"""What is compared with the plain UNet, the most telling first."""

from __future__ import annotations

from functools import partial
from typing import Any

from token_merge.tome_core import MergeSettings
from token_merge.tome_core.merge_settings import Target

from .. import peers
from ..settings import DOWNSAMPLE_2, MERGE, MERGE_ALL, MERGE_QUERIES, Setting
from .candidates import Merging
from .patches import (
    ALL,
    KEYS,
    MERGE_BY_DEFAULT,
    QUERIES,
    SEARCHED,
    WINDOWS,
    Patch,
    PictureVariant,
    both,
    downsample,
    merge,
    other_balances,
    partly_exact,
    queries_and_interleaved,
    seedless,
)

FINEST = 1
"""The trained model has self-attention at full latent resolution."""
HYPERTILE = seedless(partial(peers.hypertile, finest=FINEST))
TOME_PATCH = seedless(partial(peers.comfyui_tome, ratio=0.5))


def list_variants() -> list[PictureVariant]:
    """In the order of measuring: where time runs out, the last are missing."""
    half = MERGE_ALL.name
    down = DOWNSAMPLE_2.name
    return [
        PictureVariant("Token Downsample ×2", "ours", downsample(2), (down, "ours")),
        PictureVariant("ToDo ×2", "peer", _todo(2), (down, "ToDo")),
        PictureVariant("Token Merge 0.2", "ours", MERGE_BY_DEFAULT, (MERGE.name, "ours, local")),
        PictureVariant("Token Merge 0.5", "ours", merge(), (half, "ours, local")),
        PictureVariant("tomesd 0.5", "peer", _tomesd(0.5), (half, "tomesd")),
        PictureVariant(
            "Token Downsample ×2, interleaved", "ours", downsample(2, method="interleaved")
        ),
        PictureVariant("Token Downsample ×4", "ours", downsample(4)),
        PictureVariant("ToDo ×4", "peer", _todo(4)),
        PictureVariant(
            "Token Downsample ×4, interleaved", "ours", downsample(4, method="interleaved")
        ),
        PictureVariant("Token Downsample ×2, nearest-exact", "ours", _nearest(2)),
        PictureVariant("Token Downsample ×4, nearest-exact", "ours", _nearest(4)),
        PictureVariant("HyperTile", "peer", HYPERTILE, ("", "HyperTile")),
        PictureVariant(
            "TomePatchModel 0.5", "peer", TOME_PATCH, (MERGE_QUERIES.name, "TomePatchModel")
        ),
        PictureVariant(
            "Token Merge 0.5, queries",
            "ours",
            merge(target=QUERIES),
            (MERGE_QUERIES.name, "ours, local"),
        ),
        PictureVariant("queries merged 0.5, Downsample ×2", "ours", both(0.5, 2)),
        PictureVariant("queries merged 0.5, Downsample ×1.41", "ours", both(0.5, 1.41)),
        PictureVariant("tomesd 0.7", "peer", _tomesd(0.7)),
        PictureVariant("Token Merge 0.7", "ours", merge(ratio=0.7)),
        PictureVariant(
            "Token Downsample ×3, interleaved", "ours", downsample(3, method="interleaved")
        ),
        PictureVariant("Token Merge 0.5, keys and values", "ours", merge(target=KEYS)),
        PictureVariant("Token Merge 0.5, unsized", "ours", merge(proportional_attention=False)),
        PictureVariant("Token Merge 0.5, random", "ours", merge(matching="random")),
        PictureVariant("queries merged 0.7, Downsample ×4", "ours", both(0.7, 4)),
        PictureVariant("queries merged 0.3, Downsample ×2", "ours", both(0.3, 2), pictures=16),
        *queries_and_interleaved(SEARCHED),
        *other_balances(),
        *partly_exact(WINDOWS),
        *_predictions_only(),
        *_candidates(),
    ]


def _predictions_only() -> list[PictureVariant]:
    """Settings whose error per step is worth knowing, and cheap to know."""
    merges: dict[str, dict[str, Any]] = {
        "k-th": {"matching": "k-th"},
        "global": {"matching": "global"},
        "toma": {"matching": "toma"},
        "random, keys and values": {"matching": "random", "target": KEYS},
        "fixed destinations": {"random_destinations": False},
        "refresh_steps 1": {"refresh_steps": 1},
        "refresh_steps 4": {"refresh_steps": 4},
        "cross-attention too": {"merge_cross_attention": True},
        "MLP too": {"merge_mlp": True},
        "keys and values, unsized": {"target": KEYS, "proportional_attention": False},
    }
    downsamples: dict[str, tuple[float, str]] = {
        "×1.5": (1.5, "stratified"),
        "×1.5, nearest-exact": (1.5, "nearest-exact"),
        "×1.5, interleaved": (1.5, "interleaved"),
        "×2, area": (2, "area"),
        "×2, bilinear": (2, "bilinear"),
        "×3": (3, "stratified"),
        "×3, nearest-exact": (3, "nearest-exact"),
        "×4, area": (4, "area"),
        "×6": (6, "stratified"),
        "×6, interleaved": (6, "interleaved"),
    }
    return [
        *(
            PictureVariant(f"Token Merge 0.5, {name}", "ours", merge(**inputs), pictures=0)
            for name, inputs in merges.items()
        ),
        *(
            PictureVariant(
                f"Token Downsample {name}", "ours", downsample(factor, method=method), pictures=0
            )
            for name, (factor, method) in downsamples.items()
        ),
        PictureVariant("queries merged 0.5, Downsample ×1.5", "ours", both(0.5, 1.5), pictures=0),
        PictureVariant("Token Merge 0.3", "ours", merge(ratio=0.3), pictures=0),
        PictureVariant("tomesd 0.3", "peer", _tomesd(0.3), pictures=0),
    ]


def _candidates() -> list[PictureVariant]:
    """Means or chosen tokens, with and without proportional attention."""
    return [
        _candidate(ALL, pictures=16, sized=True),
        _candidate(ALL, chosen_keys=True),
        _candidate(ALL, chosen_keys=True, chosen_queries=True, sized=True),
        _candidate(KEYS),
        _candidate(KEYS, sized=True),
        _candidate(KEYS, chosen_keys=True),
        _candidate(KEYS, chosen_keys=True, chosen_values=True),
        _candidate(KEYS, chosen_keys=True, chosen_values=True, sized=True),
        _candidate(KEYS, 0.75, chosen_keys=True, sized=True),
        _candidate(QUERIES, chosen_queries=True),
    ]


def _candidate(
    target: Target, ratio: float = 0.5, pictures: int = 0, **how: bool
) -> PictureVariant:
    words = [word.replace("_", " ") for word, wanted in how.items() if wanted]
    what = f"candidate: merge {ratio}" + ("" if target == ALL else f", {target}")
    merging = Merging(MergeSettings(ratio, target=target), **how)
    return PictureVariant(", ".join([what, *words]), "candidate", merging, pictures=pictures)


def _nearest(factor: float) -> Patch:
    return downsample(factor, method="nearest-exact")


def _tomesd(ratio: float) -> Patch:
    return partial(peers.tomesd, setting=Setting("", ALL, ratio=ratio), finest=FINEST)


def _todo(factor: int) -> Patch:
    setting = Setting("", KEYS, factor=factor)
    return seedless(partial(peers.todo, setting=setting, finest=FINEST))
