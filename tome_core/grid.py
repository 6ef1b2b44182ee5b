"""Where tokens lie: on a grid, and with others in the sequence that attention reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from einops import rearrange
from torch import Tensor

from .constants import constant
from .tokens import number_between


@dataclass(frozen=True)
class TokenGrid:
    """Tokens in raster order: frame by frame, row by row, column by column.

    height, width: tokens per side. frames: pictures in one sequence, 1 for still images.
    """

    height: int
    width: int
    frames: int = 1

    def __post_init__(self) -> None:
        for name in ("height", "width", "frames"):
            side = getattr(self, name)
            if side < 1:
                raise ValueError(f"{name} is {side}, expected at least 1")

    @property
    def sides(self) -> tuple[int, int, int]:
        """Frames, height and width."""
        return self.frames, self.height, self.width

    @cached_property
    def tokens(self) -> int:
        """Length of the sequence."""
        return self.frames * self.height * self.width

    def downsample(self, factor: float, temporal_factor: float = 1.0) -> TokenGrid:
        """The grid with both sides divided by ``factor`` and the frames by ``temporal_factor``.

        Rounded down as in ToDo's published code, whose ``scale_factor=1 / factor`` floors; never
        below one token.
        """
        return TokenGrid(
            height=_divide(self.height, factor),
            width=_divide(self.width, factor),
            frames=_divide(self.frames, temporal_factor),
        )

    def unflatten(self, x: Tensor) -> Tensor:
        """(B, N, C) -> (B·frames, C, H, W), a view.

        Raises ValueError where N is not this grid's token count.
        """
        if x.shape[1] != self.tokens:
            raise ValueError(f"sequence has {x.shape[1]} tokens, expected {self.tokens} on {self}")
        return rearrange(
            x, "b (f h w) c -> (b f) c h w", f=self.frames, h=self.height, w=self.width
        )

    def flatten(self, x: Tensor) -> Tensor:
        """(B·frames, C, H, W) -> (B, N, C)."""
        return rearrange(x, "(b f) c h w -> b (f h w) c", f=self.frames)

    def __str__(self) -> str:
        sides = f"{self.height}x{self.width}"
        return sides if self.frames == 1 else f"{self.frames}x{sides}"


def _divide(side: int, factor: float) -> int:
    """Rounded down, at least 1. 33 / 1.1 is 30, which floating point puts a little below."""
    return max(1, int(side / factor + 1e-9))


@dataclass(frozen=True)
class Stream:
    """``before`` tokens, a picture or video in raster order, ``after`` tokens.

    A UNet's sequence is the picture alone. A transformer's also holds the prompt and references.
    """

    grid: TokenGrid
    before: int = 0
    after: int = 0

    @cached_property
    def others(self) -> int:
        """The tokens that are not of the picture."""
        return self.before + self.after

    @cached_property
    def length(self) -> int:
        return self.grid.tokens + self.others

    def take_picture(self, x: Tensor) -> Tensor:
        """The picture's tokens. (B, ..., L, C) -> (B, ..., N, C), a view."""
        return x.narrow(-2, self.before, self.grid.tokens)

    def extend_numbers(self, numbers: Tensor, length: int) -> Tensor:
        """Numbers within the picture, with those of the other tokens at both ends.

        numbers: (R, n) int64, counted from the first of the picture. length: of the whole sequence
        in which the result counts. Returns (R, before + n + after).
        """
        if not self.others:
            return numbers
        rows, device = len(numbers), numbers.device
        before = number_between(0, self.before, device).expand(rows, -1)
        after = number_between(length - self.after, length, device).expand(rows, -1)
        own = numbers + self.before if self.before else numbers
        return torch.cat([before, own, after], dim=1)

    def number_others(self, device: torch.device) -> Tensor:
        """The tokens that are not of the picture, (others,) int64."""
        return _number_others(self, device)

    def extend_sizes(self, sizes: Tensor) -> Tensor:
        """Sizes of the picture's slots, and 1 for each other token. (R, M) -> (R, M + others)."""
        before = sizes.new_ones(len(sizes), self.before)
        return torch.cat([before, sizes, sizes.new_ones(len(sizes), self.after)], dim=1)


@constant
def _number_others(stream: Stream, device: torch.device) -> Tensor:
    first_after = stream.before + stream.grid.tokens
    before = number_between(0, stream.before, device)
    return torch.cat([before, number_between(first_after, stream.length, device)])
