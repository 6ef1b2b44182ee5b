"""Costs of one block call with each setting, and from which size on a setting pays."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import get_args

from .block_calls import count_block
from .cases import PLAIN, SETTINGS, Family, Setting, Shape
from .counting import Count, Place
from .gpus import GPUS, LAUNCH_SECONDS

PLACES: tuple[Place, ...] = get_args(Place)


@dataclass(frozen=True)
class Part:
    """operations: of PyTorch. launches: kernels. bytes: read and written. flops: of matrix products
    and attention. busy_seconds: estimated without launches, by the GPU's name.
    """

    operations: int
    launches: int
    bytes: int
    flops: int
    busy_seconds: dict[str, float]


@dataclass(frozen=True)
class Cost:
    """One call of a block.

    tokens: of the picture. parts: by place. peak_bytes: of memory above what was in use before.
    attention_peak_bytes: the same of attention and what is ours around it; None in UNets, where
    ours is around the projections, too.
    """

    shape: str
    setting: str
    tokens: int
    parts: dict[Place, Part]
    peak_bytes: int
    attention_peak_bytes: int | None

    def sum_busy(self, gpu: str, places: Collection[Place] = PLACES) -> float:
        """Estimated seconds where all launches hide behind earlier kernels."""
        return sum(self.parts[place].busy_seconds[gpu] for place in places)

    def sum_seconds(self, gpu: str, places: Collection[Place] = PLACES) -> float:
        """Estimated seconds where none does."""
        launches = sum(self.parts[place].launches for place in places)
        return self.sum_busy(gpu, places) + launches * LAUNCH_SECONDS


@dataclass(frozen=True)
class BreakEven:
    """From how many tokens of the picture on a setting pays on one GPU; None where it never does.

    That is the smallest grid tried from which on, and on all larger ones, the whole block takes
    less time than plain's. tokens: where no launch hides behind earlier kernels. tokens_if_hidden:
    where all do. most_tokens: that were tried.
    """

    family: str
    setting: str
    gpu: str
    tokens: int | None
    tokens_if_hidden: int | None
    most_tokens: int


def find_cost(shape: Shape, setting: Setting) -> Cost:
    """The block is counted, its times are estimated."""
    count = count_block(shape.block, setting.patch)
    parts = {place: _sum(count, place) for place in PLACES}
    attention_peak = None if shape.is_unet else count.attention_peak
    tokens, peak = shape.block.stream.grid.tokens, count.memory.peak
    return Cost(shape.name, setting.name, tokens, parts, peak, attention_peak)


def _sum(count: Count, place: Place) -> Part:
    kernels = [kernel for each, kernel in count.kernels if each == place]
    return Part(
        operations=len(kernels),
        launches=sum(each.launches for each in kernels),
        bytes=sum(each.bytes for each in kernels),
        flops=sum(each.flops for each in kernels),
        busy_seconds={gpu.name: gpu.estimate_busy_seconds(kernels) for gpu in GPUS},
    )


def find_break_evens(family: Family) -> Iterator[BreakEven]:
    """For each setting and GPU, from block calls of all sizes of the family."""
    shapes = [Shape(family.name, family.make(side)) for side in family.sides]
    tokens = [shape.block.stream.grid.tokens for shape in shapes]
    plain = [find_cost(shape, PLAIN) for shape in shapes]
    for setting in SETTINGS:
        costs = [find_cost(shape, setting) for shape in shapes]
        pairs = list(zip(plain, costs, strict=True))
        for gpu in (each.name for each in GPUS):
            pays = [cost.sum_seconds(gpu) < without.sum_seconds(gpu) for without, cost in pairs]
            hidden = [cost.sum_busy(gpu) < without.sum_busy(gpu) for without, cost in pairs]
            first, first_hidden = find_first(tokens, pays), find_first(tokens, hidden)
            yield BreakEven(family.name, setting.name, gpu, first, first_hidden, tokens[-1])


def find_first(tokens: list[int], pays: list[bool]) -> int | None:
    """The first number of tokens from which on it pays at all others, too; None: it never does."""
    found = None
    for number, yes in zip(reversed(tokens), reversed(pays), strict=True):
        if not yes:
            break
        found = number
    return found
