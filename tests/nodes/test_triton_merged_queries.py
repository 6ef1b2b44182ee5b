"""Our own kernel that merges queries of strips, computed by Triton's interpreter."""

from __future__ import annotations

import pytest
import torch
from support.core_cases import check_slots
from support.our_kernels import take_here
from token_merge.nodes.kernels.usable import load_kernel
from token_merge.tome_core.windows.queries import Strips, merge_queries


@pytest.fixture(scope="module")
def kernel():
    pytest.importorskip("triton")
    return load_kernel("queries")


def make_strips(strips, queries, dst, left):
    numbers = torch.randperm(strips * queries).view(strips, queries)
    places = torch.stack([torch.randperm(queries)[:dst] for _ in range(strips)])
    return Strips(numbers, places, left)


@pytest.mark.parametrize(
    ("queries", "dst", "left", "channels"), [(80, 20, 64, 128), (128, 64, 64, 40), (30, 8, 9, 16)]
)
def test_the_same_queries_are_merged_as_by_pytorch(queries, dst, left, channels, kernel):
    strips = make_strips(6, queries, dst, left)
    metric = torch.randn(2, 6 * queries, channels)
    found, known = kernel.merge_queries(metric, strips), merge_queries(metric, strips)
    check_slots(found)
    assert torch.equal(found.kept, known.kept)
    assert torch.equal(found.slots, known.slots)


def test_the_first_query_of_each_cell_may_be_dst(kernel):
    """All strips then share one row of places."""
    strips = make_strips(3, 40, 10, 32)
    strips = Strips(strips.numbers, torch.arange(0, 40, 4).expand(3, -1), 32)
    metric = torch.randn(1, 120, 16)
    found, known = kernel.merge_queries(metric, strips), merge_queries(metric, strips)
    assert torch.equal(found.slots, known.slots)


@pytest.mark.filterwarnings("ignore:(invalid value|All-NaN):RuntimeWarning")
@pytest.mark.parametrize("number", [0.0, float("nan"), float("inf")])
def test_queries_without_a_direction_break_nothing(number, kernel):
    strips = make_strips(4, 80, 20, 64)
    metric = torch.randn(1, 320, 16)
    metric[:, ::2] = number
    found = kernel.merge_queries(metric, strips)
    check_slots(found)
    kept = (found.kept[0, :, :, None] == strips.dst[:, None]).any(dim=1)
    assert kept.all(), "a dst is not left"


def test_the_room_takes_it_where_strips_fit(monkeypatch):
    computed = take_here(monkeypatch, "windows.merge_queries")
    wide, narrow = make_strips(2, 160, 40, 64), make_strips(4, 80, 20, 64)
    metric = torch.randn(1, 320, 16)
    for strips, given in ((wide, metric.half()), (narrow, metric)):
        merge_queries(given, strips)
    assert not computed
    merge_queries(metric.half(), narrow)
    assert computed


def test_a_transformer_gives_what_it_gives_without_it(flux, token_merge, denoise, monkeypatch):
    model = token_merge(flux, local_window="8")
    known = denoise(model, size=(40, 40), steps=1)
    computed = take_here(monkeypatch, "windows.merge_queries", single_precision=True)
    found = denoise(model, size=(40, 40), steps=1)
    assert computed
    torch.testing.assert_close(found, known, rtol=1e-3, atol=1e-3)
