"""What the user chose in a Token Merge node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, get_args

from ..checks import check_choice, check_flag, check_number, check_whole
from ..settings import TARGETS, Settings, Target

TargetChoice = Literal[
    "queries, downsampled keys and values",
    "queries, keys and values",
    "keys and values",
    "queries",
]
Matching = Literal["local", "global", "k-th", "random"]

TARGET_CHOICES: tuple[TargetChoice, ...] = get_args(TargetChoice)
MATCHINGS: tuple[Matching, ...] = get_args(Matching)

MAX_RATIO = 0.9
MAX_STRIDE = 8


@dataclass(frozen=True)
class MergeSettings(Settings):
    """Token merging, ToMe for Stable Diffusion (arXiv 2303.17604).

    Args:
        ratio: share of a layer's tokens that is merged away, from 0 to 0.9; acts as at most
            ``most_ratio``.
        max_downsample: acts on layers downsampled at most this much; None: the model's finest.
        target: which tokens of self-attention are merged. Keys and values that are not merged can
            be downsampled instead: one token of each cell is drawn, for groups of queries apart.
        stride_x, stride_y: width and height, in tokens, of the cell that has one dst token.
        random_destinations: the dst is a random token of its cell, drawn from ``seed``, instead
            of the first one.
        merge_cross_attention, merge_mlp: also merge the queries of cross-attention and the tokens
            of the MLP.
        matching: how similar tokens are found, see planning.py.

    On UNets a merged key is that of its dst. Without ``proportional_attention`` it is the mean of
    its tokens, as in ToMe for Stable Diffusion.
    """

    node_name: ClassVar[str] = "Token Merge"
    kind: ClassVar[str] = "merging"
    window_input: ClassVar[str] = "local_window in Token Merge (Advanced)"
    window_needs_model: ClassVar[bool] = True

    ratio: float = 0.2
    max_downsample: int | None = None
    target: TargetChoice = TARGET_CHOICES[0]
    stride_x: int = 2
    stride_y: int = 2
    random_destinations: bool = True
    merge_cross_attention: bool = False
    merge_mlp: bool = False
    matching: Matching = "local"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("stride_x", self.stride_x, 1, MAX_STRIDE)
        check_whole("stride_y", self.stride_y, 1, MAX_STRIDE)
        check_choice("matching", self.matching, MATCHINGS)
        check_number("ratio", self.ratio, 0.0, MAX_RATIO)
        if self.max_downsample is not None:
            check_choice("max_downsample", self.max_downsample, (1, 2, 4, 8))
        check_choice("target", self.target, TARGET_CHOICES)
        for name in ("random_destinations", "merge_cross_attention", "merge_mlp"):
            check_flag(name, getattr(self, name))

    @cached_property
    def most_ratio(self) -> float:
        """Every cell keeps its dst token. The matching "random" has no cells."""
        if self.matching == "random":
            return MAX_RATIO
        return min(MAX_RATIO, 1 - 1 / (self.stride_x * self.stride_y))

    @cached_property
    def acting_ratio(self) -> float:
        return min(self.ratio, self.most_ratio)

    @cached_property
    def is_identity(self) -> bool:
        return self.acting_ratio == 0.0 and self.max_tokens == 0

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        said = []
        if self.ratio > self.most_ratio:
            said.append(
                f"ratio {self.ratio:g} acts as {self.most_ratio:g}: each cell of {self.stride_x} x "
                f"{self.stride_y} tokens keeps one"
            )
        if self.local_window and not self.allows_window:
            said.append(
                f"local_window is left out: it needs target {TARGET_CHOICES[0]!r}, "
                "matching 'local' and proportional_attention"
            )
        return tuple(said)

    @cached_property
    def unet_inputs(self) -> tuple[str, ...]:
        names = ("merge_cross_attention", "merge_mlp")
        return tuple(name for name in names if getattr(self, name))

    @cached_property
    def weighs_keys(self) -> bool:
        return self.merges_keys and self.proportional_attention

    @cached_property
    def merges_keys(self) -> bool:
        """True where keys and values are merged, with the queries or alone."""
        return self.target in ("queries, keys and values", "keys and values")

    @cached_property
    def downsamples_keys(self) -> bool:
        """True where keys and values have a plan of their own."""
        return self.target == "queries, downsampled keys and values"

    @cached_property
    def groups_queries(self) -> bool:
        return self.downsamples_keys

    @cached_property
    def allows_window(self) -> bool:
        return self.downsamples_keys and self.matching == "local" and self.proportional_attention

    def find_targets(self, downsample: int, resolutions: Sequence[int]) -> frozenset[Target]:
        if downsample > (self.max_downsample or resolutions[0]):
            return frozenset()
        acts: dict[Target, bool] = {
            "queries": self.target != "keys and values",
            "keys and values": self.target != "queries",
            "queries of cross-attention": self.merge_cross_attention,
            "tokens of the MLP": self.merge_mlp,
        }
        return frozenset(target for target in TARGETS if acts[target])

    def explain_no_targets(self, resolutions: Sequence[int]) -> str:
        return (
            f"the finest self-attention of this model is downsampled {resolutions[0]}x, so "
            f"max_downsample has to be auto or at least {resolutions[0]}"
        )
