"""Rivals compute what they are known for, and the pairs that they read are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import Mock

import comfy_kitchen
import pytest
import torch
import torch.nn.functional as F
from token_merge.nodes.hooks.attention.call import AttentionCall
from token_merge.tome_core.faster_forms import FORMS
from token_merge.tome_core.windows import int8 as int8_windows
from torch import Tensor

from benchmarks.quality import sampling
from benchmarks.quality.batches import make_batches
from benchmarks.quality.effort import Effort, EffortWatch
from benchmarks.quality.patches import windows
from benchmarks.quality.regimes import Regime
from benchmarks.quality.rivals import (
    ON_FLUX,
    ON_WAN,
    install,
    int8,
    neighbourhood,
    put_beside_int8,
    sol_attention,
)
from benchmarks.quality.rivals.install import IN_FLUX, IN_INT8, IN_WAN, Rival, SolAttention
from benchmarks.quality.rivals.sol_attention import BLOCK, Routing
from benchmarks.trained import places, weights

LENGTH = 5 * BLOCK + 11
NOTHING = torch.zeros(LENGTH, dtype=torch.bool)


def draw(*shape: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(shape, generator=generator) for _ in range(3))
    return 2 * q, k, v


def tell_error(out: Tensor, exact: Tensor) -> float:
    return float((out - exact).square().mean().sqrt() / exact.square().mean().sqrt())


def test_sol_attention_is_exact_where_every_block_is_read() -> None:
    q, k, v = draw(3, LENGTH, 16)
    exact = F.scaled_dot_product_attention(q, k, v)
    for routing, always in ((Routing(tau=-1e3), NOTHING), (Routing(), ~NOTHING)):
        out, pairs = sol_attention.attend(q, k, v, routing, always)
        torch.testing.assert_close(out, exact, atol=1e-5, rtol=1e-4)
        assert pairs >= LENGTH**2


def test_sol_attention_reads_a_block_that_is_not_exact_by_its_means() -> None:
    """With as little as can be: its own block and those beside it."""
    q, k, v = draw(1, LENGTH, 16)
    out, _ = sol_attention.attend(q, k, v, Routing(tau=1e3, extra_tokens=0), NOTHING)
    own, far = slice(0, BLOCK), [x[0, 2 * BLOCK :] for x in (k, v)]
    near_k, near_v = (x[0, : 2 * BLOCK] for x in (k, v))
    blocks = [x.split(BLOCK) for x in far]
    sizes = torch.tensor([len(block) for block in blocks[0]])
    mean_k, mean_v = (torch.stack([block.mean(0) for block in each]) for each in blocks)
    # All queries of a block read means with the same weights: those of their own mean.
    scores = torch.cat([q[0, own] @ near_k.T, (q[0, own].mean(0) @ mean_k.T).expand(BLOCK, -1)], 1)
    # What all scores of a query have in common is taken from the mean of the keys' means.
    centre = torch.stack([block.mean(0) for block in k[0].split(BLOCK)]).mean(0)
    scores[:, : 2 * BLOCK] -= (q[0, own] @ centre)[:, None]
    scores[:, 2 * BLOCK :] -= q[0, own].mean(0) @ centre
    scores = scores / 4 + torch.cat([torch.zeros(2 * BLOCK), sizes.log()])
    expected = scores.softmax(1) @ torch.cat([near_v, mean_v])
    torch.testing.assert_close(out[0, own], expected, atol=1e-5, rtol=1e-4)


def test_extra_tokens_make_the_error_of_sol_attention_smaller() -> None:
    q, k, v = draw(3, LENGTH, 16)
    exact = F.scaled_dot_product_attention(q, k, v)
    errors, pairs = [], []
    for extra in (0, 64):
        routing = Routing(tau=2.0, extra_tokens=extra)
        out, read = sol_attention.attend(q, k, v, routing, NOTHING)
        errors.append(tell_error(out, exact))
        pairs.append(read)
    assert errors[1] < errors[0] and pairs[1] > pairs[0]


@pytest.mark.skipif(not hasattr(comfy_kitchen, "sol_attn"), reason="comfy-kitchen is older")
@pytest.mark.parametrize("tau_or_share", [1.3, 0.25])
def test_sol_attention_is_comfy_kitchens(tau_or_share: float) -> None:
    """With the version that ComfyUI has from 0.35 on."""
    from comfy_kitchen.backends.eager.sol_attn import sol_attn

    q, k, v = draw(3, LENGTH, 16)
    by_share = tau_or_share < 1
    routing = Routing(tau_or_share, tau_or_share if by_share else None, extra_tokens=0)
    out, _ = sol_attention.attend(q, k, v, routing, torch.arange(LENGTH) < 77)
    theirs = sol_attn(
        *(x[:, :, None] for x in (q, k, v)),
        tau=tau_or_share,
        topk_ratio=tau_or_share if by_share else 0.0,
        sink_blocks=[0, 2],
    )
    torch.testing.assert_close(out, theirs[:, :, 0], atol=1e-4, rtol=1e-4)


def test_neighbours_are_those_of_a_box_that_is_moved_at_borders() -> None:
    sides, box, before = (3, 4, 6), (2, 3, 3), 5
    q, k, v = draw(1, 2, before + 72, 8)
    out, pairs = neighbourhood.attend(q, k, v, sides, box, before)
    places = torch.cartesian_prod(*(torch.arange(side) for side in sides))  # (72, 3)
    mask = torch.ones(before + 72, before + 72, dtype=torch.bool)
    for axis in range(3):
        first = (places[:, axis] - box[axis] // 2).clamp(0, sides[axis] - box[axis])
        steps = places[:, axis] - first[:, None]
        mask[before:, before:] &= (steps >= 0) & (steps < box[axis])
    exact = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(out, exact, atol=1e-5, rtol=1e-4)
    assert pairs == int(mask.sum())


@pytest.mark.skipif(not hasattr(comfy_kitchen, "na3d"), reason="comfy-kitchen is older")
def test_neighbours_are_comfy_kitchens() -> None:
    from comfy_kitchen.backends.eager.na import na3d

    sides, box = (3, 4, 6), (2, 3, 4)
    q, k, v = draw(1, 2, 72, 8)
    out, _ = neighbourhood.attend(q, k, v, sides, box, 0)
    theirs = na3d(*(x.transpose(1, 2).unflatten(1, sides) for x in (q, k, v)), list(box))
    torch.testing.assert_close(out.transpose(1, 2), theirs.flatten(1, 3), atol=1e-5, rtol=1e-4)


def test_int8_rounds_and_does_no_more() -> None:
    q, k, v = draw(1, 2, LENGTH, 64)
    exact = F.scaled_dot_product_attention(q, k, v)
    error = tell_error(int8.attend(q, k, v), exact)
    assert 1e-3 < error < 0.05
    # What all keys have in common is taken away before they are rounded.
    assert tell_error(int8.attend(q, k + 20, v), exact) == pytest.approx(error, rel=0.1)


def test_tiles_of_the_picture_come_before_the_prompt() -> None:
    order = SolAttention(Routing(), tiled=True).list_order(77 + 16 * 16, IN_FLUX)
    assert sorted(order.tolist()) == list(range(77 + 16 * 16))
    first = order[:BLOCK] - 77
    assert first.max() == 7 * 16 + 7 and {n % 16 for n in first.tolist()} == set(range(8))
    assert order[-77:].tolist() == list(range(77))


def test_blocks_of_sol_attention_in_raster_order_are_rows_of_the_picture() -> None:
    """The prompt, which is first in Flux, is read behind them."""
    heads, of_picture = 2, BLOCK * BLOCK
    q, k, v = draw(1, heads, 77 + of_picture, 8)
    call = AttentionCall.read(q, k, v, heads, skip_reshape=True, transformer_options={})
    routing = Routing(tau=2.0, extra_tokens=0)
    out, pairs = SolAttention(routing)(call, IN_FLUX)
    moved_out, *moved = (x[0].roll(-77, dims=1) for x in (out, q, k, v))
    is_prompt = torch.arange(77 + of_picture) >= of_picture
    expected, read = sol_attention.attend(*moved, routing, is_prompt)
    torch.testing.assert_close(moved_out, expected)
    assert pairs == read < 0.5 * (77 + of_picture) ** 2


REGIME = Regime("euler", "simple", 4)


def measure(kind: str, patch: Callable[..., object], regime: Regime = REGIME) -> Effort:
    model = weights.load(places.WEIGHTS[kind])
    (batch,) = make_batches(kind, 1, {"flux": 16, "wan": 8}[kind])
    watch = EffortWatch()
    sampling.sample(watch.attach(patch(model)), batch, regime)
    return watch.effort


@pytest.mark.parametrize("kind", ["flux", "wan"])
def test_pairs_of_rivals_are_counted_and_the_first_steps_are_left(kind: str) -> None:
    rivals, picture = {"flux": (ON_FLUX, IN_FLUX), "wan": (ON_WAN, IN_WAN)}[kind]
    in_int8 = measure(kind, rivals["INT8 of all attention"])
    later, always = (
        measure(kind, Rival(SolAttention(Routing(tau=2.0, extra_tokens=0)), picture, start))
        for start in (0.2, 0.0)
    )
    assert in_int8 == measure(kind, lambda model: model)
    # One of four steps is above this noise level.
    assert later.pairs == pytest.approx(0.25 * in_int8.pairs + 0.75 * always.pairs, rel=0.05)
    assert always.pairs < in_int8.pairs


@pytest.mark.parametrize("kind", ["flux", "wan"])
def test_windows_of_our_node_are_in_int8_beside_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, rivals = windows(2), {"flux": ON_FLUX, "wan": ON_WAN}[kind]
    before, computed = dict(FORMS), Mock(side_effect=int8_windows.attend_in_int8)
    monkeypatch.setattr(install, "IN_INT8", replace(IN_INT8, compute=computed))
    assert measure(kind, put_beside_int8(ours, rivals)) == measure(kind, ours)
    assert computed.called and before == FORMS
