"""What is compared with the plain video transformer, the most telling first."""

from __future__ import annotations

from .patches import FEWER_KEYS, MERGE_BY_DEFAULT, PictureVariant, downsample, merge, windows


def list_variants() -> list[PictureVariant]:
    """In the order of measuring: where time runs out, the last are missing."""
    return [
        PictureVariant("Token Downsample ×2, window", "ours", windows(2)),
        PictureVariant("Token Downsample ×3, window", "ours", windows(3)),
        PictureVariant("Token Downsample ×4, window", "ours", windows(4)),
        PictureVariant(
            "Token Downsample ×2, half the frames",
            "ours",
            windows(2, temporal_factor=2.0),
        ),
        PictureVariant(
            "Token Downsample ×2, interleaved", "ours", downsample(2, method="interleaved")
        ),
        PictureVariant("Token Downsample ×2", "ours", downsample(2)),
        PictureVariant("Token Merge 0.2, window", "ours", MERGE_BY_DEFAULT),
        PictureVariant("Token Merge 0.5, window", "ours", merge(target=FEWER_KEYS)),
        PictureVariant(
            "Token Merge 0.2, no window", "ours", merge(0.2, FEWER_KEYS, local_window="off")
        ),
        PictureVariant("Token Merge 0.5", "ours", merge()),
    ]
