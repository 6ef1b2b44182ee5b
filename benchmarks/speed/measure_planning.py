"""What choosing the tokens costs, against how many there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

import torch
from token_merge.tome_core import (
    Draws,
    LayerTokens,
    MergeSettings,
    Skipped,
    Stream,
    TokenGrid,
    WindowPlan,
    plan_layer,
)
from tomesd.merge import bipartite_soft_matching_random2d
from torch import Tensor

from .. import ours
from ..settings import RATIO
from .clocks import seconds_now
from .environment import Environment
from .results import Planning
from .session import Session

MOST_BYTES = 6 * 2**30
"""Methods that compare all with all are left out where their similarities need more than this."""

FEW_TOKENS = 128**2


def measure(
    session: Session,
    sides: Sequence[int],
    environment: Environment,
    *,
    channels: int,
    rounds: int,
) -> None:
    """Plans for square grids of these sides, all methods in turn."""
    device, dtype = environment.device, environment.dtype
    task = session.progress.add_task("planning", total=len(sides))
    for side in sides:
        tokens = side * side
        planning = Planning(tokens, channels, environment.dtype_name)
        generator = torch.Generator(device).manual_seed(0)
        metric = torch.randn(1, tokens, channels, generator=generator, device=device, dtype=dtype)
        methods = dict(_methods(metric, side, planning))
        session.progress.update(task, description=f"planning, {tokens} tokens")
        with torch.inference_mode():
            # Small plans take milliseconds, which a busy moment of the machine can double.
            for number in range(-1, rounds * (4 if tokens <= FEW_TOKENS else 1)):
                for name, plan in methods.items():
                    start = seconds_now(device)
                    plan()
                    seconds = seconds_now(device) - start
                    if number >= 0:
                        planning.seconds.setdefault(name, []).append(seconds)
        session.progress.advance(task)
        session.results.put_planning(planning)
        session.results.write(session.out)
        times = ", ".join(
            f"{name} {1000 * median(s):.1f} ms" for name, s in planning.seconds.items()
        )
        session.console.print(f"planning, {tokens} tokens: {times}", highlight=False)
    session.progress.update(task, visible=False)


def _methods(
    metric: Tensor, side: int, planning: Planning
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each method's name and its planning alone: no token is merged."""
    grid = TokenGrid(side, side)
    for matching in ours.list_options("matching"):
        settings = MergeSettings(ratio=RATIO, matching=matching)  # type: ignore[arg-type]
        if matching in ("local", "toma") or _fits(matching, metric, planning, f"ours, {matching}"):
            yield f"ours, {matching}", partial(_plan, metric, grid, settings)
    if _fits("global", metric, planning, "tomesd"):
        generator = torch.Generator(metric.device).manual_seed(0)
        sizes = (side, side, 2, 2, int(grid.tokens * RATIO))
        yield (
            "tomesd",
            partial(bipartite_soft_matching_random2d, metric, *sizes, generator=generator),
        )


def _plan(metric: Tensor, grid: TokenGrid, settings: MergeSettings) -> object:
    draws = Draws(("benchmark",), metric.device)
    plan = plan_layer(settings, LayerTokens(Stream(grid), lambda: metric, draws))
    assert not isinstance(plan, Skipped | WindowPlan)
    # Our plans sort their tokens when they first merge; tomesd sorts before.
    return plan.merge(metric[..., :1])


def _fits(matching: str, metric: Tensor, planning: Planning, name: str) -> bool:
    """Whether all similarities of the method fit into memory; notes it where they do not."""
    destinations = metric.shape[1] * (RATIO if matching == "random" else 1 / 4)
    needed = destinations * (metric.shape[1] - destinations) * metric.element_size()
    if needed <= MOST_BYTES:
        return True
    planning.left_out[name] = f"needs {math.ceil(needed / 2**30)} GiB for its similarities"
    return False
