"""The token grid of an attention layer: where in the picture each token of a sequence lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from einops import rearrange
from torch import Tensor


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

    @classmethod
    def from_activations(cls, shape: Sequence[int]) -> TokenGrid:
        """Grid of a layer that flattens activations of shape (B, C, H, W) to H·W tokens.

        The activations are the only exact source: a UNet rounds up where it halves an odd side,
        so neither the latent's size nor the token count determines the grid.
        """
        if len(shape) != 4:
            raise ValueError(f"activations have shape {tuple(shape)}, expected (B, C, H, W)")
        return cls(height=shape[2], width=shape[3])

    @property
    def sides(self) -> tuple[int, int, int]:
        """Frames, height and width."""
        return self.frames, self.height, self.width

    @property
    def tokens(self) -> int:
        """Length of the sequence."""
        return self.frames * self.height * self.width

    def downsample(self, factor: float, temporal_factor: float = 1.0) -> TokenGrid:
        """The grid with both sides divided by ``factor`` and the frames by ``temporal_factor``.

        Rounded down as in ToDo's published code, whose ``scale_factor=1 / factor`` floors; never
        below one token.
        """
        return TokenGrid(
            height=max(1, int(self.height / factor)),
            width=max(1, int(self.width / factor)),
            frames=max(1, int(self.frames / temporal_factor)),
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
