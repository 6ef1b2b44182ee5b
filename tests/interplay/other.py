"""Another node of ComfyUI, or a situation that a workflow brings, beside our nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from comfy.model_patcher import ModelPatcher
from support.modes import Mode

from .kinds import Kind
from .sampler_call import SamplerCall

Order = Literal["before", "after"]
"""It says where our nodes stand in the graph."""


@dataclass(frozen=True)
class Limit:
    """Where a combination does less than work.

    Args:
        outcome: "works in part" where some of what our nodes do is left out, "left alone" where
            no layer is reduced, "refused" where there is an error.
        said: a part of what the node reports, or of the error.
        why: for the table, a sentence without its full stop.
        kinds, modes, orders: names of those it concerns, all where there is none.
        hides_other: ours takes the place of all that the other node does.
    """

    outcome: Literal["works in part", "left alone", "refused"]
    said: str
    why: str
    kinds: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    orders: tuple[Order, ...] = ()
    hides_other: bool = False

    def concerns(self, kind: Kind, mode: Mode, order: Order) -> bool:
        named = ((kind.name, self.kinds), (mode.name, self.modes), (order, self.orders))
        return all(not names or name in names for name, names in named)


@dataclass(frozen=True, eq=False)
class Other:
    """One row of the table, or the part of it that concerns ``kinds``.

    Args:
        name: as ComfyUI shows it.
        kinds: the kinds that it is tried on.
        patch: what it does to a MODEL.
        change: what it does to the call of the sampler.
        build: the model, where it is another than the kind's.
        call: of the sampler, where that model needs another than the kind's.
        situation: in which the sampler runs.
        changes_picture: False where the picture is bit-equal to the one without it.
        skips_calls: whether the model is called less often than without it.
        same_in_both_orders: whether the picture is bit-equal with our nodes before and after it.
        most_error: of our nodes beside it, over their error without it.
        slow: a cell takes seconds, so that ``--long`` alone tries it.
        limits: where it does less than work.
        note: for the table, a sentence without its full stop.
        not_tried: kinds that it exists for and is not tried on, each with the reason.
    """

    name: str
    kinds: tuple[str, ...]
    patch: Callable[[ModelPatcher], ModelPatcher] | None = None
    change: Callable[[SamplerCall], SamplerCall] | None = None
    build: Callable[[], ModelPatcher] | None = None
    call: Callable[[], SamplerCall] | None = None
    situation: Callable[[], AbstractContextManager[Any]] | None = None
    changes_picture: bool = True
    skips_calls: bool = False
    same_in_both_orders: bool = True
    most_error: float = 3.0
    slow: bool = False
    limits: tuple[Limit, ...] = ()
    note: str = ""
    not_tried: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @property
    def orders(self) -> tuple[Order, ...]:
        """What changes the call alone is neither before nor after our nodes."""
        return ("before", "after") if self.patch else ("before",)

    @cache  # noqa: B019
    def remove_last(self) -> Other | None:
        """What the row is compared with: all that it needs, without the other node itself."""
        needs = {"build": self.build, "change": self.change, "patch": self.patch}
        chosen = [name for name, need in needs.items() if need]
        if len(chosen) < 2:
            return None
        return replace(self, situation=None, **{chosen[-1]: None})

    def find_limit(self, kind: Kind, mode: Mode, order: Order) -> Limit | None:
        return next((each for each in self.limits if each.concerns(kind, mode, order)), None)

    def build_model(self, kind: Kind) -> ModelPatcher:
        return self.build() if self.build else kind.build()

    def patch_model(self, model: ModelPatcher) -> ModelPatcher:
        return self.patch(model) if self.patch else model

    def enter(self) -> AbstractContextManager[Any]:
        return self.situation() if self.situation else nullcontext()

    def make_call(self, kind: Kind) -> SamplerCall:
        call = self.call() if self.call else kind.call()
        return self.change(call) if self.change else call


def run_node(node: Any, *args: Any, **inputs: Any) -> Any:
    """The first output of one of ComfyUI's own nodes, whichever style it is written in."""
    function = getattr(node, "FUNCTION", None)
    schema = hasattr(node, "define_schema")
    output = node.execute(*args, **inputs) if schema else getattr(node(), function)(*args, **inputs)
    return output.args[0] if hasattr(output, "args") else output[0]
