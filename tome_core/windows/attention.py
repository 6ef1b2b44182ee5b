"""Attention with local windows: near keys exact, far keys drawn."""

from __future__ import annotations

from torch import Tensor

from ..faster_forms import find_form
from ..tokens import divide_heads, lay_in_rows, make_output
from .heads import Heads
from .plan import WindowGeometry, WindowPlan

MOST_COPIED, MOST_COPIED_BY_DEVICE = 3.0, {"cpu": 0.0}
"""Copies in memory at a time, in multiples of all queries. 0: one head at a time. As many heads are
computed together as fit into this. With more heads at a time a GPU starts fewer kernels, and blocks
then need at most 1.05 times the memory of unpatched ones. A CPU is faster with one head, see
docs/tried.md."""


def attend(
    plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """Attention of a whole stream; see ``attend_densely`` for what it computes.

    Args:
        q: (B, H, L, D).
        k, v: (B, G, L, D), with H heads or fewer.
        mask: added to the scores, (B or 1, H or 1, L or 1, L).
        scale: of the scores.

    Returns (B, H, L, D).
    """
    if faster := find_form("windows.attend", q.device, plan, q, k, v, mask, scale):
        return faster(plan, q, k, v, mask, scale)
    return attend_by_sets(plan, q, k, v, mask, scale)


def attend_by_sets(
    plan: WindowPlan, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """As ``attend``, on any device.

    Each set of keys is one call of a kernel: for all tiles, with keys of their own, and without a
    mask, which is what the fastest kernels ask for. The calls are joined by the log of the scores'
    sum, by which the keys of each set get their weight.
    """
    out = make_output(q, v.shape[3])
    k, v = lay_in_rows(k), lay_in_rows(v)
    of_picture = plan.geometry.stream.take_picture(out)
    for some in choose_heads(plan.geometry, q.shape[1]):
        heads = Heads(plan, q, k, v, mask, scale, some)
        of_picture[:, some.start : some.stop] = heads.attend_picture()
    if plan.of_others:
        # They are few, so that all heads are computed together.
        heads = Heads(plan, q, k, v, mask, scale, range(q.shape[1]))
        out.index_copy_(2, plan.geometry.others, heads.attend_others(plan.of_others))
    return out


def choose_heads(geometry: WindowGeometry, heads: int) -> list[range]:
    """The heads that are computed together, part by part."""
    tokens = geometry.queries.numel()
    # In memory while one set is computed: the queries, and once more in the order of the set, the
    # outputs until then, and the set's keys and values.
    of_sets = (
        2 * layout.rows * layout.keys + (number + 3) * tokens
        for number, layout in enumerate(geometry.of_picture)
    )
    copied = MOST_COPIED_BY_DEVICE.get(geometry.queries.device.type, MOST_COPIED)
    return divide_heads(heads, max(of_sets), copied * heads * geometry.stream.length)
