"""What the user chose in a Token Downsample node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, get_args

from ..checks import check_choice, check_number
from ..settings import Settings, Target

DownsampleMethod = Literal[
    "interleaved", "stratified", "nearest-exact", "nearest", "bilinear", "bicubic", "area", "max"
]

METHODS: tuple[DownsampleMethod, ...] = get_args(DownsampleMethod)

DRAWN: tuple[DownsampleMethod, ...] = ("interleaved", "stratified")
"""These methods keep random tokens."""

MIN_FACTOR, MAX_FACTOR = 1.0, 8.0


@dataclass(frozen=True)
class DownsampleSettings(Settings):
    """Downsampling of keys and values, ToDo (arXiv 2402.13573).

    Args:
        factor: divides both sides of the grid of keys and values in the model's finest
            self-attention layers, 1 to 8; it need not be whole.
        factor_level_2: the same for the layers at the next coarser resolution.
        method: how keys and values are resampled. Keys of transformers are always chosen, since
            they carry positions.
        temporal_factor: divides the frames of a video transformer's keys and values, 1 to 8.

    ``max_tokens`` acts on the layers of these two resolutions.
    """

    node_name: ClassVar[str] = "Token Downsample"
    kind: ClassVar[str] = "downsampling"

    factor: float = 2.0
    factor_level_2: float = 1.0
    method: DownsampleMethod = "interleaved"
    temporal_factor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("factor", "factor_level_2", "temporal_factor"):
            check_number(name, getattr(self, name), MIN_FACTOR, MAX_FACTOR)
        check_choice("method", self.method, METHODS)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        if not self.local_window or self.allows_window:
            return ()
        methods = " or ".join(map(repr, DRAWN))
        return (f"local_window is left out: it needs method {methods}, and proportional_attention",)

    @cached_property
    def is_identity(self) -> bool:
        factors = (self.factor, self.factor_level_2, self.temporal_factor)
        return factors == (1.0, 1.0, 1.0) and self.max_tokens == 0

    @cached_property
    def unet_inputs(self) -> tuple[str, ...]:
        return ("factor_level_2",) if self.factor_level_2 > 1 else ()

    @cached_property
    def groups_queries(self) -> bool:
        return self.method == "interleaved"

    @cached_property
    def allows_window(self) -> bool:
        return self.method in DRAWN and self.proportional_attention

    def find_factor(self, downsample: int, resolutions: Sequence[int]) -> float:
        """The factor of a layer; 1 beyond the second resolution. Args as ``find_targets``."""
        factors = (self.factor, self.factor_level_2)
        return dict(zip(resolutions, factors, strict=False)).get(downsample, 1.0)

    def find_targets(self, downsample: int, resolutions: Sequence[int]) -> frozenset[Target]:
        has_limit = self.max_tokens > 0 and downsample in resolutions[:2]
        fewer = self.temporal_factor > 1 or self.find_factor(downsample, resolutions) > 1
        return frozenset({"keys and values"} if has_limit or fewer else ())

    def explain_no_targets(self, resolutions: Sequence[int]) -> str:
        return "factor is 1, and this model has no coarser resolution for factor_level_2"
