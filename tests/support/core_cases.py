"""Random grids, settings and tokens for the core, small enough to be checked one by one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    MergeSettings,
    Settings,
    Stream,
    TokenGrid,
)
from token_merge.tome_core.downsampling.settings import DRAWN, MAX_FACTOR, METHODS
from token_merge.tome_core.merging.settings import (
    MATCHINGS,
    MAX_RATIO,
    MAX_STRIDE,
    TARGET_CHOICES,
)
from token_merge.tome_core.settings import MAX_SEED, MAX_TOKENS, MAX_WINDOW
from token_merge.tome_core.windows import MergedQueries
from torch import Tensor

from .layers import LayerTokens

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
CONTENTS = ("random", "zeros", "constant", "huge", "tiny", "one NaN", "one infinity")
LARGE = 4096
"""From so many tokens of a whole batch on, one image is enough."""


def grids(most_side: int = 64, most_frames: int = 9) -> st.SearchStrategy[TokenGrid]:
    """Pictures, strips of up to 2048 x 4 tokens either way, and videos."""
    side, thin, long = st.integers(1, most_side), st.integers(1, 4), st.integers(1, 32 * most_side)
    few, frames = st.integers(1, most_side // 4), st.integers(2, most_frames)
    usual = st.integers(min(8, most_side // 2), most_side)
    return st.one_of(
        st.builds(TokenGrid, few, few),
        st.builds(TokenGrid, usual, usual),
        st.builds(TokenGrid, side, side),
        st.builds(TokenGrid, long, thin),
        st.builds(TokenGrid, thin, long),
        st.builds(TokenGrid, few, few, frames),
    )


def limits() -> st.SearchStrategy[int]:
    """``max_tokens``: none, one that matters to these grids, or any."""
    none = st.just(0)
    return st.one_of(none, none, st.integers(1, 2048), st.integers(0, MAX_TOKENS))


def seeds() -> st.SearchStrategy[int]:
    return st.one_of(st.integers(0, 9), st.integers(0, MAX_SEED))


def merge_settings() -> st.SearchStrategy[MergeSettings]:
    stride = st.one_of(st.just(2), st.integers(1, MAX_STRIDE))
    return st.builds(
        MergeSettings,
        max_tokens=limits(),
        proportional_attention=st.booleans(),
        seed=seeds(),
        ratio=st.one_of(st.floats(0.25, 0.75), st.floats(0.0, MAX_RATIO)),
        max_downsample=st.sampled_from([None, 1, 2, 4, 8]),
        target=st.sampled_from(TARGET_CHOICES),
        stride_x=stride,
        stride_y=stride,
        random_destinations=st.booleans(),
        merge_cross_attention=st.booleans(),
        merge_mlp=st.booleans(),
        matching=st.sampled_from(MATCHINGS),
        local_window=st.one_of(st.none(), st.integers(0, MAX_WINDOW)),
    )


def acting_merge_settings() -> st.SearchStrategy[MergeSettings]:
    """Those that merge on most grids, into means."""
    return st.builds(
        MergeSettings,
        seed=seeds(),
        ratio=st.floats(0.2, 0.75),
        random_destinations=st.booleans(),
        matching=st.sampled_from(MATCHINGS),
    )


def window_merge_settings() -> st.SearchStrategy[MergeSettings]:
    """Those that merge queries of local windows, if the grid leaves room for them."""
    return st.builds(
        MergeSettings,
        seed=seeds(),
        ratio=st.floats(0.2, MAX_RATIO),
        stride_x=st.one_of(st.just(2), st.integers(1, MAX_STRIDE)),
        stride_y=st.one_of(st.just(2), st.integers(2, MAX_STRIDE)),
        random_destinations=st.booleans(),
        local_window=st.one_of(st.none(), st.integers(1, MAX_WINDOW)),
    )


def downsample_settings() -> st.SearchStrategy[DownsampleSettings]:
    factor = st.one_of(st.sampled_from([1.0, 1.5, 2.0, 4.0]), st.floats(1.0, MAX_FACTOR))
    return st.builds(
        DownsampleSettings,
        max_tokens=limits(),
        proportional_attention=st.booleans(),
        seed=seeds(),
        factor=factor,
        factor_level_2=factor,
        method=st.sampled_from(METHODS),
        local_window=st.one_of(st.none(), st.integers(0, MAX_WINDOW)),
        temporal_factor=factor,
    )


def window_settings() -> st.SearchStrategy[DownsampleSettings]:
    """Those that have local windows, if the grid leaves room for them."""
    return st.builds(
        DownsampleSettings,
        seed=seeds(),
        factor=st.one_of(st.sampled_from([2.0, 4.0]), st.floats(1.5, MAX_FACTOR)),
        method=st.sampled_from(DRAWN),
        local_window=st.one_of(st.none(), st.integers(1, MAX_WINDOW)),
        temporal_factor=st.one_of(st.just(1.0), st.floats(1.0, MAX_FACTOR)),
    )


@dataclass(frozen=True)
class Tokens:
    """A batch of tokens to be drawn. content: one of ``CONTENTS``. strided: no contiguous one."""

    batch: int
    channels: int
    dtype: torch.dtype
    content: str
    strided: bool
    seed: int

    def draw(self, count: int, *, seed: int = 0) -> Tensor:
        """(B, count, C)."""
        generator = torch.Generator().manual_seed(self.seed + seed)
        x = torch.randn(self.batch, count, self.channels, generator=generator)
        if self.content in ("zeros", "constant"):
            x = torch.full_like(x, float(self.content == "constant"))
        x = x * {"huge": 1e30, "tiny": 1e-30}.get(self.content, 1.0)
        x = x.to(self.dtype)
        if self.content.startswith("one") and self.batch:
            x[0, count // 2] = float(self.content.split()[1])
        return x.mT.contiguous().mT if self.strided else x


@st.composite
def tokens(draw: st.DrawFn, count: int) -> Tokens:
    """As many images as are checked quickly, 0 to 64 of them."""
    most = max(1, min(64, LARGE // count))
    return Tokens(
        batch=draw(st.one_of(st.integers(0, min(2, most)), st.integers(0, most))),
        channels=draw(st.integers(1, 8)),
        dtype=draw(st.sampled_from(DTYPES)),
        content=draw(st.one_of(st.just("random"), st.sampled_from(CONTENTS))),
        strided=draw(st.booleans()),
        seed=draw(st.integers(0, 999)),
    )


def comparable_tokens(most: int = 4) -> st.SearchStrategy[Tokens]:
    """Images of which each has its own nearest tokens, but for rounding errors."""
    types = st.sampled_from([torch.float32, torch.float64])
    return st.builds(
        Tokens,
        st.integers(1, most),
        st.integers(2, 8),
        types,
        st.just("random"),
        st.booleans(),
        st.integers(0, 999),
    )


@st.composite
def streams(draw: st.DrawFn, grid: st.SearchStrategy[TokenGrid]) -> Stream:
    """A picture alone, or one between other tokens."""
    others = st.integers(0, 9)
    if draw(st.booleans()):
        return Stream(draw(grid))
    return Stream(draw(grid), draw(others), draw(others))


def make_layer(
    settings: Settings, stream: Stream, metric: Tensor, level: int = 0, of_model: int = 12
) -> LayerTokens:
    """A layer of a model with three resolutions. level: which one it has."""
    resolutions = (1, 2, 4)
    return LayerTokens(
        stream,
        lambda: metric,
        Draws((settings.seed, 14.6, "layer"), torch.device("cpu")),
        resolutions[level],
        resolutions,
        settings.find_local_window(of_model),
    )


def check_slots(merged: MergedQueries) -> None:
    """Each query has a slot of its strip; one that remains has its own."""
    queries, left = merged.slots.shape[2], merged.kept.shape[2]
    assert ((merged.slots >= 0) & (merged.slots < left)).all()
    assert ((merged.kept >= 0) & (merged.kept < queries)).all()
    own = merged.slots.gather(2, merged.kept)
    assert torch.equal(own, torch.arange(left).expand_as(own))
