"""What the user chose, validated once; every function below takes one of these objects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from .checks import check_choice, check_flag, check_number, check_whole
from .schedule import PercentWindow

Part = Literal["queries", "keys and values", "queries of cross-attention", "tokens of the MLP"]
"""What one setting can reduce in a layer."""

Target = Literal["queries, keys and values", "keys and values", "queries"]
DownsampleMethod = Literal[
    "interleaved", "stratified", "nearest-exact", "nearest", "bilinear", "bicubic", "area", "max"
]
Matching = Literal["local", "global", "k-th", "random", "toma"]

PARTS: tuple[Part, ...] = get_args(Part)
TARGETS: tuple[Target, ...] = get_args(Target)
METHODS: tuple[DownsampleMethod, ...] = get_args(DownsampleMethod)
MATCHINGS: tuple[Matching, ...] = get_args(Matching)

DRAWN: tuple[DownsampleMethod, ...] = ("interleaved", "stratified")
"""The methods that keep random tokens."""

MAX_RATIO = 0.9
MAX_STRIDE = 8
MIN_FACTOR, MAX_FACTOR = 1.0, 8.0
MAX_SEED = 2**64 - 1
MAX_REFRESH_STEPS = 100
MAX_TOKENS = 2**20
MAX_WINDOW = 64


@dataclass(frozen=True, kw_only=True)
class Settings(ABC):
    """What the settings of all nodes have.

    Args:
        window: the part of the schedule in which they act.
        max_tokens: most tokens, or keys and values, that a layer keeps; 0: no limit.
        proportional_attention: a key that stands for s tokens weighs as much as s keys, ToMe
            (arXiv 2210.09461) eq. 1.
        seed: of all that is drawn.

    Raises ValueError naming the input, its value and what is accepted.
    """

    window: PercentWindow = field(default_factory=PercentWindow)
    max_tokens: int = 0
    proportional_attention: bool = True
    seed: int = 0

    node_name: ClassVar[str]

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0, MAX_SEED)
        check_whole("max_tokens", self.max_tokens, 0, MAX_TOKENS)
        check_flag("proportional_attention", self.proportional_attention)

    @property
    @abstractmethod
    def is_identity(self) -> bool:
        """True where every layer would keep all its tokens."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the user is told of inputs that act otherwise than their values say."""
        return ()

    @property
    def refresh_steps(self) -> int:
        """Steps for which the layers of one resolution keep a shared plan; 0: they share none."""
        return 0

    @property
    def groups_queries(self) -> bool:
        """True where queries are split into groups."""
        return False

    def find_local_window(self, of_model: int) -> int:
        """Side of the box of exact keys around each tile of queries; 0: none.

        of_model: the side where the user leaves it to the kind of model.
        """
        return 0

    @property
    def mixes_keys(self) -> bool:
        """True where every key that is left is a weighted mean of tokens."""
        return False

    @property
    def weighs_keys(self) -> bool:
        """True where the keys of a UNet's layer come to stand for different numbers of tokens."""
        return False

    @property
    def unet_inputs(self) -> tuple[str, ...]:
        """The inputs that are on and act on UNets only."""
        return ()

    @abstractmethod
    def find_parts(self, downsample: int, resolutions: Sequence[int]) -> frozenset[Part]:
        """What is reduced in a layer.

        downsample: the latent's side over the side of the layer's grid. resolutions: this number
        for all layers of the model, finest first.
        """


@dataclass(frozen=True)
class MergeSettings(Settings):
    """Token merging, ToMe for Stable Diffusion (arXiv 2303.17604).

    Args:
        ratio: share of a layer's tokens that is merged away, from 0 to 0.9; acts as at most
            ``most_ratio``.
        max_downsample: acts on layers downsampled at most this much; None: the model's finest.
        target: which tokens of self-attention are merged.
        stride_x, stride_y: width and height, in tokens, of the cell that has one dst token.
        random_destinations: the dst is a random token of its cell, drawn from ``seed``, instead
            of the first one.
        merge_cross_attention, merge_mlp: also merge the queries of cross-attention and the tokens
            of the MLP.
        matching: how similar tokens are found, see planning.py.
        refresh_steps: 0: every layer has its own plan in every step. n: the layers of one
            resolution share a plan, which is kept for n steps.

    On UNets a merged key is that of its dst. Without ``proportional_attention`` it is the mean of
    its tokens, as in ToMe for Stable Diffusion.
    """

    node_name: ClassVar[str] = "Token Merge"

    ratio: float = 0.5
    max_downsample: int | None = None
    target: Target = "queries, keys and values"
    stride_x: int = 2
    stride_y: int = 2
    random_destinations: bool = True
    merge_cross_attention: bool = False
    merge_mlp: bool = False
    matching: Matching = "local"
    refresh_steps: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("stride_x", self.stride_x, 1, MAX_STRIDE)
        check_whole("stride_y", self.stride_y, 1, MAX_STRIDE)
        check_choice("matching", self.matching, MATCHINGS)
        check_number("ratio", self.ratio, 0.0, MAX_RATIO)
        if self.max_downsample is not None:
            check_choice("max_downsample", self.max_downsample, (1, 2, 4, 8))
        check_choice("target", self.target, TARGETS)
        for name in ("random_destinations", "merge_cross_attention", "merge_mlp"):
            check_flag(name, getattr(self, name))
        check_whole("refresh_steps", self.refresh_steps, 0, MAX_REFRESH_STEPS)

    @property
    def most_ratio(self) -> float:
        """Every cell keeps its dst token. The matchings "random" and "toma" have no cells."""
        if self.matching in ("random", "toma"):
            return MAX_RATIO
        return min(MAX_RATIO, 1 - 1 / (self.stride_x * self.stride_y))

    @property
    def acting_ratio(self) -> float:
        return min(self.ratio, self.most_ratio)

    @property
    def is_identity(self) -> bool:
        return self.acting_ratio == 0.0 and self.max_tokens == 0

    @property
    def remarks(self) -> tuple[str, ...]:
        if self.ratio <= self.most_ratio:
            return ()
        return (
            f"ratio {self.ratio:g} acts as {self.most_ratio:g}: each cell of {self.stride_x} x "
            f"{self.stride_y} tokens keeps one",
        )

    @property
    def mixes_keys(self) -> bool:
        return self.matching == "toma"

    @property
    def unet_inputs(self) -> tuple[str, ...]:
        names = ("merge_cross_attention", "merge_mlp")
        return tuple(name for name in names if getattr(self, name))

    @property
    def weighs_keys(self) -> bool:
        merges_keys = self.target != "queries"
        return merges_keys and self.proportional_attention and not self.mixes_keys

    def find_parts(self, downsample: int, resolutions: Sequence[int]) -> frozenset[Part]:
        if downsample > (self.max_downsample or resolutions[0]):
            return frozenset()
        acts: dict[Part, bool] = {
            "queries": self.target != "keys and values",
            "keys and values": self.target != "queries",
            "queries of cross-attention": self.merge_cross_attention,
            "tokens of the MLP": self.merge_mlp,
        }
        return frozenset(part for part in PARTS if acts[part])


@dataclass(frozen=True)
class DownsampleSettings(Settings):
    """Downsampling of keys and values, ToDo (arXiv 2402.13573).

    Args:
        factor: divides both sides of the grid of keys and values in the model's finest
            self-attention layers, 1 to 8; it need not be whole.
        factor_level_2: the same for the layers at the next coarser resolution.
        method: how keys and values are resampled. Keys of transformers are always chosen, since
            they carry positions.
        local_window: side, in tokens, of the box around each tile of queries in which all keys
            stay, see local_window.py; 0: none. None: as is best for the kind of model.
        temporal_factor: divides the frames of a video transformer's keys and values, 1 to 8.

    ``max_tokens`` acts on the layers of these two resolutions.
    """

    node_name: ClassVar[str] = "Token Downsample"

    factor: float = 2.0
    factor_level_2: float = 1.0
    method: DownsampleMethod = "interleaved"
    local_window: int | None = None
    temporal_factor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("factor", "factor_level_2", "temporal_factor"):
            check_number(name, getattr(self, name), MIN_FACTOR, MAX_FACTOR)
        check_choice("method", self.method, METHODS)
        if self.local_window is not None:
            check_whole("local_window", self.local_window, 0, MAX_WINDOW)

    @property
    def remarks(self) -> tuple[str, ...]:
        if not self.local_window or self._allows_window:
            return ()
        methods = " or ".join(map(repr, DRAWN))
        return (f"local_window is left out: it needs method {methods}, and proportional_attention",)

    @property
    def is_identity(self) -> bool:
        factors = (self.factor, self.factor_level_2, self.temporal_factor)
        return factors == (1.0, 1.0, 1.0) and self.max_tokens == 0

    @property
    def groups_queries(self) -> bool:
        return self.method == "interleaved"

    @property
    def _allows_window(self) -> bool:
        """True where far keys are drawn, and weigh as much as the tokens they stand for."""
        return self.method in DRAWN and self.proportional_attention

    def find_local_window(self, of_model: int) -> int:
        if not self._allows_window:
            return 0
        return of_model if self.local_window is None else self.local_window

    def find_factor(self, downsample: int, resolutions: Sequence[int]) -> float:
        """The factor of a layer; 1 beyond the second resolution. Args as ``find_parts``."""
        factors = (self.factor, self.factor_level_2)
        return dict(zip(resolutions, factors, strict=False)).get(downsample, 1.0)

    def find_parts(self, downsample: int, resolutions: Sequence[int]) -> frozenset[Part]:
        has_limit = self.max_tokens > 0 and downsample in resolutions[:2]
        fewer = self.temporal_factor > 1 or self.find_factor(downsample, resolutions) > 1
        return frozenset({"keys and values"} if has_limit or fewer else ())
