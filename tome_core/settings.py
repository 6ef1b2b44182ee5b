"""What the user chose, validated once; every function below takes one of these objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from .schedule import PercentWindow

Target = Literal["queries, keys and values", "keys and values", "queries"]
DownsampleMethod = Literal[
    "stratified", "interleaved", "nearest-exact", "nearest", "bilinear", "bicubic", "area", "max"
]
Matching = Literal["local", "global", "k-th", "random", "toma"]

TARGETS: tuple[Target, ...] = get_args(Target)
METHODS: tuple[DownsampleMethod, ...] = get_args(DownsampleMethod)
CHOOSING_METHODS = frozenset[DownsampleMethod](
    {"interleaved", "stratified", "nearest-exact", "nearest"}
)
"""Keys and values that they leave are tokens that were there, never means."""
MATCHINGS: tuple[Matching, ...] = get_args(Matching)

MAX_RATIO = 0.9
MAX_STRIDE = 8
MIN_FACTOR, MAX_FACTOR = 1.0, 8.0
MAX_SEED = 2**64 - 1
MAX_REFRESH_STEPS = 100
MAX_TOKENS = 2**20
MAX_BLOCKS = 100


def _check_whole(name: str, value: int, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r}, expected a whole number from {least} to {most}")


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, choices))}")


@dataclass(frozen=True)
class TransformerSettings:
    """What acts on the blocks of transformers alone.

    keep_first_blocks, keep_last_blocks: this many blocks at either end are left whole.
    """

    keep_first_blocks: int = 0
    keep_last_blocks: int = 0

    def __post_init__(self) -> None:
        _check_whole("keep_first_blocks", self.keep_first_blocks, 0, MAX_BLOCKS)
        _check_whole("keep_last_blocks", self.keep_last_blocks, 0, MAX_BLOCKS)

    def keeps(self, block: int, blocks: int) -> bool:
        """True where the block with number ``block`` of ``blocks`` is left whole."""
        return block < self.keep_first_blocks or block >= blocks - self.keep_last_blocks


@dataclass(frozen=True)
class MergeSettings:
    """Token merging, ToMe for Stable Diffusion (arXiv 2303.17604).

    ratio: share of a layer's tokens that is merged away, 0 to 1 - 1 / (stride_x · stride_y);
    matchings without cells ("random", "toma") take up to 0.9.
    max_downsample: acts on layers downsampled at most this much; None: the model's finest.
    target: which token sequences of self-attention are merged.
    stride_x, stride_y: one destination token per cell of this size, in tokens.
    random_destinations: a random token of each cell instead of its first; drawn from ``seed``.
    merge_cross_attention, merge_mlp: also merge these layers' queries and tokens.
    matching: how similar tokens are found, see matchers.py.
    refresh_steps: 0 plans in every layer of every step; n shares one plan among the layers of a
    resolution and keeps it for n steps.
    max_tokens: most tokens left in a layer, whatever the ratio; 0 is no limit.
    min_tokens: layers with fewer tokens are left alone; 0 is none.
    transformer: what acts on transformers alone.
    proportional_attention: a key that stands for s tokens weighs as much as s keys, ToMe
    (arXiv 2210.09461) eq. 1.

    Raises ValueError naming the input, its value and what is accepted.
    """

    ratio: float = 0.5
    max_downsample: int | None = None
    target: Target = "queries, keys and values"
    window: PercentWindow = field(default_factory=PercentWindow)
    stride_x: int = 2
    stride_y: int = 2
    random_destinations: bool = True
    seed: int = 0
    merge_cross_attention: bool = False
    merge_mlp: bool = False
    matching: Matching = "local"
    refresh_steps: int = 0
    max_tokens: int = 0
    min_tokens: int = 0
    transformer: TransformerSettings = field(default_factory=TransformerSettings)
    proportional_attention: bool = True

    def __post_init__(self) -> None:
        _check_whole("stride_x", self.stride_x, 1, MAX_STRIDE)
        _check_whole("stride_y", self.stride_y, 1, MAX_STRIDE)
        _check_choice("matching", self.matching, MATCHINGS)
        has_cells = self.matching not in ("random", "toma")
        most = min(MAX_RATIO, 1 - 1 / (self.stride_x * self.stride_y)) if has_cells else MAX_RATIO
        if not 0.0 <= self.ratio <= most:  # also refuses NaN
            strides = f" with stride_x {self.stride_x} and stride_y {self.stride_y}"
            raise ValueError(
                f"ratio is {self.ratio}, expected 0.0 to {most:.4g}{strides if has_cells else ''}"
            )
        if self.max_downsample is not None:
            _check_choice("max_downsample", self.max_downsample, (1, 2, 4, 8))
        _check_choice("target", self.target, TARGETS)
        _check_whole("seed", self.seed, 0, MAX_SEED)
        _check_whole("refresh_steps", self.refresh_steps, 0, MAX_REFRESH_STEPS)
        _check_whole("max_tokens", self.max_tokens, 0, MAX_TOKENS)
        _check_whole("min_tokens", self.min_tokens, 0, MAX_TOKENS)

    @property
    def is_identity(self) -> bool:
        """True where no token would ever be merged."""
        return self.ratio == 0.0 and self.max_tokens == 0

    @property
    def merges_queries(self) -> bool:
        return self.target != "keys and values"

    @property
    def merges_keys_and_values(self) -> bool:
        return self.target != "queries"


@dataclass(frozen=True)
class DownsampleSettings:
    """Key and value downsampling, ToDo (arXiv 2402.13573).

    factor: divides both sides of the grid of keys and values in the model's finest
    self-attention layers, 1 to 8; it need not be whole. factor_level_2: the same one resolution
    coarser. method: how keys and values are resampled; keys of transformers are always chosen.
    seed: of the tokens that "stratified" and "interleaved" draw.
    temporal_factor: divides the frames of a video transformer's keys and values, 1 to 8.
    max_tokens: most keys and values left in a layer of these two resolutions; 0 is no limit.
    min_tokens: layers with fewer tokens are left alone; 0 is none.
    transformer: what acts on transformers alone.
    proportional_attention: a key that stands for s tokens weighs as much as s keys, ToMe
    (arXiv 2210.09461) eq. 1.

    Raises ValueError naming the input, its value and what is accepted.
    """

    factor: float = 2.0
    factor_level_2: float = 1.0
    method: DownsampleMethod = "stratified"
    window: PercentWindow = field(default_factory=PercentWindow)
    max_tokens: int = 0
    min_tokens: int = 0
    temporal_factor: float = 1.0
    transformer: TransformerSettings = field(default_factory=TransformerSettings)
    proportional_attention: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("factor", "factor_level_2", "temporal_factor"):
            value = getattr(self, name)
            if not MIN_FACTOR <= value <= MAX_FACTOR:  # also refuses NaN
                raise ValueError(f"{name} is {value}, expected {MIN_FACTOR} to {MAX_FACTOR}")
        _check_choice("method", self.method, METHODS)
        _check_whole("seed", self.seed, 0, MAX_SEED)
        _check_whole("max_tokens", self.max_tokens, 0, MAX_TOKENS)
        _check_whole("min_tokens", self.min_tokens, 0, MAX_TOKENS)

    @property
    def is_identity(self) -> bool:
        """True where every layer would keep all its keys and values."""
        return self.factors == (1.0, 1.0) and self.temporal_factor == 1.0 and self.max_tokens == 0

    @property
    def factors(self) -> tuple[float, float]:
        """Factor per resolution with self-attention, finest first."""
        return (self.factor, self.factor_level_2)


Settings = MergeSettings | DownsampleSettings
