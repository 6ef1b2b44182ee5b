"""What the settings of all nodes have; each node has its own kind, validated once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, get_args

from .checks import check_flag, check_whole
from .schedule import PercentRange

Target = Literal["queries", "keys and values", "queries of cross-attention", "tokens of the MLP"]
"""It says what one setting can reduce in a layer."""

TARGETS: tuple[Target, ...] = get_args(Target)
MAX_SEED = 2**64 - 1
MAX_TOKENS = 2**20
MAX_WINDOW = 64


@dataclass(frozen=True, kw_only=True)
class Settings(ABC):
    """What the settings of all nodes have.

    Args:
        percent_range: the part of the schedule in which they act.
        max_tokens: most tokens, or keys and values, that a layer keeps; 0: no limit.
        proportional_attention: a key that stands for s tokens weighs as much as s keys, ToMe
            (arXiv 2210.09461) eq. 1.
        local_window: side, in tokens, of the box around each tile of queries in which all keys
            stay, see windows/plan.py; 0: none. None: as is best for the kind of model.
        seed: of all that is drawn.
        exact_early_steps: true: they do not act where the picture is decided, see
            ``start_after``.
        reduce_small_layers: true: layers are also reduced where this device gains nothing by it.

    Raises ValueError naming the input, its value and what is accepted.
    """

    percent_range: PercentRange = field(default_factory=PercentRange)
    max_tokens: int = 0
    proportional_attention: bool = True
    local_window: int | None = None
    seed: int = 0
    exact_early_steps: bool = True
    reduce_small_layers: bool = False

    node_name: ClassVar[str]
    kind: ClassVar[str]
    """Of the work: ``layer`` says when it pays."""

    window_input: ClassVar[str] = "local_window"
    """How a user is told of this input."""

    window_needs_model: ClassVar[bool] = False
    """It is true where a local window is only for the kinds of models that have one."""

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0, MAX_SEED)
        check_whole("max_tokens", self.max_tokens, 0, MAX_TOKENS)
        check_flag("proportional_attention", self.proportional_attention)
        check_flag("exact_early_steps", self.exact_early_steps)
        check_flag("reduce_small_layers", self.reduce_small_layers)
        if self.local_window is not None:
            check_whole("local_window", self.local_window, 0, MAX_WINDOW)

    def start_after(self, early: float) -> Settings:
        """The same settings, which act only after this share of the schedule where early steps are
        to stay exact. Where that changes nothing, ``exact_early_steps`` is false in them.

        early: 0 for a kind of model that has no such part.

        Raises ValueError where they would act in no step.
        """
        asked = self.percent_range
        if not self.exact_early_steps or asked.start >= early:
            return replace(self, exact_early_steps=False)
        if asked.end <= early:
            raise ValueError(
                f"end_percent is {asked.end}, expected more than {early}, or exact_early_steps off"
            )
        return replace(self, percent_range=PercentRange(early, asked.end))

    @property
    @abstractmethod
    def is_identity(self) -> bool:
        """True where every layer would keep all its tokens."""

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What the user is told of inputs that act otherwise than their values say."""
        return ()

    @cached_property
    def groups_queries(self) -> bool:
        """True where queries are split into groups, or heads, that draw keys of their own."""
        return False

    @property
    @abstractmethod
    def allows_window(self) -> bool:
        """True where keys beyond a local window are drawn, and weigh as much as the tokens they
        stand for.
        """

    def find_local_window(self, of_model: int) -> int:
        """Side of the box of exact keys around each tile of queries; 0: none.

        of_model: the side where the user leaves it to the kind of model, 0 on UNets.
        """
        if not self.allows_window or (self.window_needs_model and not of_model):
            return 0
        return of_model if self.local_window is None else self.local_window

    @cached_property
    def weighs_keys(self) -> bool:
        """True where the keys of a UNet's layer come to stand for different numbers of tokens."""
        return False

    @cached_property
    def unet_inputs(self) -> tuple[str, ...]:
        """The inputs that are on and act on UNets only."""
        return ()

    @abstractmethod
    def find_targets(self, downsample: int, resolutions: Sequence[int]) -> frozenset[Target]:
        """What is reduced in a layer.

        downsample: the latent's side over the side of the layer's grid. resolutions: this number
        for all layers of the model, finest first.
        """

    @abstractmethod
    def explain_no_targets(self, resolutions: Sequence[int]) -> str:
        """Why nothing is reduced in any layer of a model that has these resolutions."""
