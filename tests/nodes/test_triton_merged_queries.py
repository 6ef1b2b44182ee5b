"""Our own kernel that merges queries of strips, computed by Triton's interpreter."""

from __future__ import annotations

import pytest
import torch
from support.window_reference import check_slots
from token_merge.nodes.hooks import merging_choice
from token_merge.tome_core.merged_queries import Strips, merge_queries

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def kernel():
    pytest.importorskip("triton")
    return merging_choice._import_kernel_of_queries()


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
    kept = (found.kept[0, :, :, None] == strips.places[:, None]).any(dim=1)
    assert kept.all(), "a dst is not left"


def test_it_is_taken_where_strips_fit(kernel, monkeypatch):
    monkeypatch.setattr(merging_choice, "explain_lack_of_queries", lambda *_: "")
    taken = []
    monkeypatch.setattr(kernel, "_merge_strips", lambda *given: taken.append(given))
    wide, narrow = make_strips(2, 160, 40, 64), make_strips(4, 80, 20, 64)
    metric = torch.randn(1, 320, 16)
    for strips, given in ((wide, metric.half()), (narrow, metric)):
        merging_choice.merge_queries(given, strips)
    assert not taken
    merging_choice.merge_queries(metric.half(), narrow)
    assert len(taken) == 1


def test_it_is_tried_on_small_strips(kernel, monkeypatch):
    assert merging_choice._merges(kernel, CPU, torch.float16)

    def merge_wrongly(kept, slots, metric, strips):
        kept.copy_(torch.arange(kept.shape[2]))
        slots.zero_()

    monkeypatch.setattr(kernel, "_merge_strips", merge_wrongly)
    assert not merging_choice._merges(kernel, CPU, torch.float16)


def test_a_transformer_gives_what_it_gives_without_it(
    flux, token_merge, denoise, kernel, monkeypatch
):
    model = token_merge(flux, local_window="8")
    known = denoise(model, size=(40, 40), steps=1)
    taken = []

    def merge(metric, strips):
        taken.append(strips)
        return kernel.merge_queries(metric, strips)

    monkeypatch.setattr(merging_choice, "merge_queries", merge)
    found = denoise(model, size=(40, 40), steps=1)
    assert taken
    torch.testing.assert_close(found, known, rtol=1e-3, atol=1e-3)
