"""What is compared with the plain transformer, the most telling first.

No peer knows transformers.
"""

from __future__ import annotations

from typing import Any

from .patches import (
    FEWER_KEYS,
    KEYS,
    MERGE_BY_DEFAULT,
    QUERIES,
    SEARCHED,
    WINDOWS,
    PictureVariant,
    both,
    downsample,
    merge,
    other_balances,
    partly_exact,
    queries_and_interleaved,
    windows,
)

REGULAR = "nearest-exact"
UNSIZED: dict[str, Any] = {"proportional_attention": False}


def list_variants() -> list[PictureVariant]:
    """In the order of measuring: where time runs out, the last are missing."""
    return [
        PictureVariant("Token Downsample ×2, window", "ours", windows(2)),
        PictureVariant("Token Downsample ×3, window", "ours", windows(3)),
        PictureVariant("Token Downsample ×4, window", "ours", windows(4)),
        PictureVariant("Token Downsample ×6, window", "ours", windows(6)),
        PictureVariant("Token Downsample ×4, window 8", "ours", windows(4, 8)),
        PictureVariant("Token Downsample ×2", "ours", downsample(2)),
        PictureVariant(
            "Token Downsample ×2, interleaved", "ours", downsample(2, method="interleaved")
        ),
        PictureVariant("Token Downsample ×2, nearest-exact", "ours", downsample(2, method=REGULAR)),
        PictureVariant("Token Merge 0.2, window", "ours", MERGE_BY_DEFAULT),
        PictureVariant("Token Merge 0.5, window", "ours", merge(target=FEWER_KEYS)),
        PictureVariant(
            "Token Merge 0.2, no window", "ours", merge(0.2, FEWER_KEYS, local_window="off")
        ),
        PictureVariant("Token Merge 0.5", "ours", merge()),
        PictureVariant("Token Downsample ×2, unsized", "ours", downsample(2, **UNSIZED)),
        PictureVariant("Token Merge 0.5, unsized", "ours", merge(**UNSIZED)),
        PictureVariant("Token Downsample ×4", "ours", downsample(4)),
        PictureVariant(
            "Token Downsample ×4, interleaved", "ours", downsample(4, method="interleaved")
        ),
        PictureVariant("Token Downsample ×4, nearest-exact", "ours", downsample(4, method=REGULAR)),
        PictureVariant("Token Merge 0.5, queries", "ours", merge(target=QUERIES), pictures=16),
        PictureVariant("Token Merge 0.5, keys and values", "ours", merge(target=KEYS), pictures=16),
        PictureVariant("queries merged 0.5, Downsample ×2", "ours", both(0.5, 2), pictures=16),
        PictureVariant(
            "Token Downsample ×2, nearest-exact, unsized",
            "ours",
            downsample(2, method=REGULAR, **UNSIZED),
            pictures=16,
        ),
        PictureVariant(
            "Token Downsample ×2, area", "ours", downsample(2, method="area"), pictures=16
        ),
        *queries_and_interleaved(SEARCHED),
        *other_balances(),
        *partly_exact(WINDOWS),
        *_predictions_only(),
    ]


def _predictions_only() -> list[PictureVariant]:
    """Settings whose error per step is worth knowing, and cheap to know."""
    return [
        *(
            PictureVariant(
                f"Token Merge 0.5, {matching}", "ours", merge(matching=matching), pictures=0
            )
            for matching in ("random", "k-th", "global")
        ),
        PictureVariant(
            "Token Merge 0.5, refresh_steps 4", "ours", merge(refresh_steps=4), pictures=0
        ),
        PictureVariant("Token Merge 0.3", "ours", merge(ratio=0.3), pictures=0),
        PictureVariant("Token Downsample ×1.5", "ours", downsample(1.5), pictures=0),
    ]
