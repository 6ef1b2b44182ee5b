"""Our own kernels that merge tokens, computed by Triton's interpreter, and who calls them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from support.other_device_run import put_on_other_device
from support.our_kernels import take_here
from token_merge.nodes.kernels.usable import load_kernel
from token_merge.tome_core import Draws, Stream, TokenGrid, choose_strided, match_local
from token_merge.tome_core.faster_forms import FORMS

CPU = torch.device("cpu")
GRIDS = [
    (TokenGrid(16, 16), (2, 2), 0.2),
    (TokenGrid(37, 41), (2, 2), 0.5),
    (TokenGrid(19, 50), (1, 4), 0.2),
    (TokenGrid(10, 12, 3), (3, 2), 0.5),
]


@pytest.fixture(scope="module")
def kernels():
    pytest.importorskip("triton")
    return load_kernel("merging")


def choose_dst(grid, strides=(2, 2)):
    return choose_strided(grid, *strides, Draws((7,), CPU), CPU)


def find_own(plan):
    """The token that stands for the slot of each token."""
    return plan.unmerge(plan.chosen[..., None])[..., 0]


@pytest.mark.parametrize(("grid", "strides", "ratio"), GRIDS, ids=str)
def test_the_same_tokens_are_merged_as_by_pytorch(grid, strides, ratio, kernels):
    # Of few channels, so that no two similarities are nearly equal: they are compared in steps.
    metric = torch.randn(2, grid.tokens, 5, generator=torch.Generator().manual_seed(1))
    given = grid, choose_dst(grid, strides), int(grid.tokens * ratio)
    found, known = kernels.match_local(metric, *given), match_local(metric, *given)
    assert (found.keys_read, found.shape) == (known.keys_read, known.shape)
    assert (find_own(found) == find_own(known)).float().mean() > 0.98
    assert torch.equal(found.sizes, found.unlinked.sizes)


def test_slots_are_numbered_as_well_a_few_tokens_at_a_time(kernels, monkeypatch):
    grid = TokenGrid(21, 23)
    metric = torch.randn(2, grid.tokens, 5).round()  # many are equally similar
    given = grid, choose_dst(grid), 150
    at_once = kernels.match_local(metric, *given)
    monkeypatch.setattr(kernels, "AT_ONCE", 128)
    found = kernels.match_local(metric, *given)
    assert torch.equal(found.rows, at_once.rows)
    assert torch.equal(found.chosen, at_once.chosen)
    assert torch.equal(found.sizes, at_once.sizes)


def test_each_slot_has_the_mean_of_its_tokens(kernels):
    grid = TokenGrid(20, 22)
    x = torch.randn(2, grid.tokens, 40).half()
    plan = kernels.match_local(x, grid, choose_dst(grid), 220)
    expected = plan.unlinked.merge(x.float()).half()
    torch.testing.assert_close(plan.merge(x), expected)


def test_tokens_of_a_flat_picture_are_merged_into_few_slots(kernels):
    """All are alike, so long lists come into being."""
    grid = TokenGrid(24, 24)
    metric = torch.ones(1, grid.tokens, 8)
    plan = kernels.match_local(metric, grid, choose_dst(grid), 400)
    assert plan.keys_read == 176
    assert torch.equal(plan.sizes, plan.unlinked.sizes)
    assert plan.sizes.max() > 100
    x = torch.randn(1, grid.tokens, 8)
    torch.testing.assert_close(plan.merge(x), plan.unlinked.merge(x))


def test_every_dst_stays_however_many_are_to_be_merged(kernels):
    grid = TokenGrid(12, 12)
    dst, metric = choose_dst(grid), torch.randn(1, grid.tokens, 8)
    plan = kernels.match_local(metric, grid, dst, grid.tokens)
    assert plan.keys_read == dst.count
    assert torch.equal(plan.chosen[0].sort().values, dst.flat.sort().values)


@pytest.mark.filterwarnings("ignore:(invalid value|All-NaN):RuntimeWarning")
@pytest.mark.parametrize("number", [0.0, float("nan"), float("inf")])
def test_tokens_without_a_direction_break_nothing(number, kernels):
    grid = TokenGrid(12, 12)
    metric = torch.randn(1, grid.tokens, 8)
    metric[:, ::3] = number
    plan = kernels.match_local(metric, grid, choose_dst(grid), 40)
    assert plan.keys_read == 104
    assert torch.equal(plan.unlinked.assign.unique(), torch.arange(104))


def test_a_picture_beside_others_is_merged_as_alone(kernels):
    grid = TokenGrid(12, 12)
    metric = torch.randn(2, grid.tokens, 16)
    given = grid, choose_dst(grid), 40
    together = kernels.match_local(metric, *given)
    for image in range(2):
        alone = kernels.match_local(metric[image : image + 1], *given)
        assert torch.equal(alone.unlinked.assign[0], together.unlinked.assign[image])
        merged = alone.merge(metric[image : image + 1])[0], together.merge(metric)[image]
        assert torch.equal(*merged)


def test_a_stream_with_a_prompt_gets_a_plan_of_all_its_tokens(kernels):
    grid = TokenGrid(12, 12)
    plan = kernels.match_local(torch.randn(1, grid.tokens, 8), grid, choose_dst(grid), 40)
    assert plan.extend(Stream(grid)) is plan
    extended = plan.extend(Stream(grid, before=5))
    x = torch.randn(1, 149, 4)
    assert torch.equal(extended.merge(x)[:, :5], x[:, :5])
    assert extended.keys_read == 109


def test_gradients_go_the_way_of_pytorch(kernels):
    grid = TokenGrid(12, 12)
    plan = kernels.match_local(torch.randn(1, grid.tokens, 8), grid, choose_dst(grid), 40)
    x = torch.randn(1, grid.tokens, 8, requires_grad=True)
    plan.merge(x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_the_room_takes_them_for_half_precision(dtype, monkeypatch):
    grid = TokenGrid(12, 12)
    computed = take_here(monkeypatch, "merging.match_local")
    match_local(torch.randn(1, grid.tokens, 8, dtype=dtype), grid, choose_dst(grid), 40)
    assert bool(computed) == (dtype == torch.float16)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_what_a_gpu_lacks_is_told(dtype, unet, token_merge, denoise, messages, monkeypatch):
    """Where the kernels would take such tokens."""
    lacks = replace(FORMS["merging.match_local"], why_unavailable=lambda _: "Triton is missing")
    monkeypatch.setitem(FORMS, "merging.match_local", lacks)
    model = token_merge(unet("Flux", dtype), local_window="off")
    denoise(put_on_other_device(model, monkeypatch), size=(32, 32), steps=1)
    said = "merging is slower than it could be: Triton is missing" in " ".join(messages())
    assert said == (dtype == torch.float16)


def test_a_unet_gives_what_it_gives_without_them(unet, token_merge, denoise, monkeypatch):
    model = token_merge(unet("SD15"))
    known = denoise(model, steps=1)
    computed = take_here(monkeypatch, "merging.match_local", single_precision=True)
    found = denoise(model, steps=1)
    assert computed
    torch.testing.assert_close(found, known, rtol=1e-3, atol=1e-3)


def test_exactly_the_tokens_of_the_highest_levels_are_merged(kernels):
    """Many have the same level: then the first ones in the order of the slots are merged."""
    grid = TokenGrid(16, 16)
    dst = choose_dst(grid)
    levels = torch.randint(1, 9, (2, grid.tokens), dtype=torch.int32) * 8191
    nearest = dst.flat[torch.randint(dst.count, (2, grid.tokens))].int()
    plan = kernels.match_local(torch.randn(2, grid.tokens, 8), grid, dst, 100)
    given = levels.clone()
    kernels._number_slots(plan, given, nearest, dst)
    src = torch.ones(grid.tokens, dtype=torch.bool).index_fill_(0, dst.flat, False)
    for image in range(2):
        stays = torch.zeros(grid.tokens, dtype=torch.bool).index_fill_(0, plan.chosen[image], True)
        assert (~stays).sum() == 100 and stays[dst.flat].all()
        assert levels[image][~stays].min() >= levels[image][stays & src].max()
        into = plan.chosen[image][plan.unlinked.assign[image]]
        assert torch.equal(into[~stays], nearest[image][~stays].long())
