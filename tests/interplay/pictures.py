"""Pictures with and without the nodes, each sampled once in a run of the tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache

from comfy.model_patcher import ModelPatcher
from support.modes import Mode
from token_merge.nodes.hooks.attach import listen
from torch import Tensor

from .first_versions import leave_out_if_lacking
from .kinds import Kind
from .other import Order, Other

DONE = re.compile(r"\d+ layers?: [\d,]+ tokens|acts from \d")
"""A line of the report that says what was reduced, and when, begins so."""


@dataclass(frozen=True, eq=False)
class Picture:
    """latent: what the sampler ends with. calls: of the model.

    done, left: what our nodes reported, as (name of a node, line).
    """

    latent: Tensor
    calls: int
    done: tuple[tuple[str, str], ...]
    left: tuple[tuple[str, str], ...]


@cache
def sample_once(kind: Kind, other: Other | None, mode: Mode | None, order: Order) -> Picture:
    """As ``paint``, remembered."""
    return paint(kind, other, mode, order)


def paint(kind: Kind, other: Other | None, mode: Mode | None, order: Order) -> Picture:
    """Sample anew, without the other node or without ours where there is none."""
    if other:
        leave_out_if_lacking(kind, other)
    model = other.build_model(kind) if other else kind.build()
    call = other.make_call(kind) if other else kind.call()
    if mode and order == "before":
        model = mode.put_on(model)
    if other:
        model = other.patch_model(model)
    if mode and order == "after":
        model = mode.put_on(model)
    said: list[tuple[str, str]] = []
    model = listen(model, said.extend)
    situation = other.enter() if other else nullcontext()
    with situation, _count_calls(model, kind.entry) as calls:
        latent = call.sample(model)
    return Picture(
        latent,
        len(calls),
        tuple(each for each in said if DONE.match(each[1])),
        tuple(each for each in said if not DONE.match(each[1])),
    )


@contextmanager
def _count_calls(model: ModelPatcher, entry: str) -> Iterator[list[None]]:
    calls: list[None] = []
    module = model.model.diffusion_model.get_submodule(entry)
    hook = module.register_forward_pre_hook(lambda *_: calls.append(None))
    try:
        yield calls
    finally:
        hook.remove()
