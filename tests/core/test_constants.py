"""Constants are made once, apart from what a block allocates, and hold little memory."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from support.at_once import run_at_once
from token_merge.tome_core import (
    DownsampleSettings,
    Draws,
    Layer,
    MergeSettings,
    Stream,
    TokenGrid,
    constants,
    plan_layer,
)
from token_merge.tome_core.constant_store import ConstantStore
from token_merge.tome_core.constants import constant, forget_constants

CPU = torch.device("cpu")
CALLS = 2
KIB, MOST = 1024, 64 * 2**20


@dataclass(frozen=True, eq=False)
class Holder:
    """As plans and cells are: a tensor in a dataclass."""

    held: torch.Tensor


@pytest.fixture
def store(monkeypatch):
    """One of 4 KiB in place of the pack's."""
    made = ConstantStore(most_bytes=4 * KIB, most_values=8, calls=CALLS)
    monkeypatch.setattr(constants, "STORE", made)
    return made


@pytest.fixture
def make(store):
    """A constant of some KiB. calls: the arguments for which it was made."""

    @constant
    def make(size, name=""):
        make.calls.append((size, name))
        return Holder(torch.zeros(int(size * KIB), dtype=torch.uint8))

    make.calls = []
    return make


def test_a_constant_is_made_once_for_equal_arguments(make, store):
    assert make(1, name="a") is make(1, name="a")
    assert make(1) is not make(1, name="a")
    assert len(make.calls) == 2 and store.bytes == 2 * KIB


def test_the_least_recently_used_leaves_first_and_stays_usable(make, store):
    first, second = make(2, "first"), make(1, "second")
    make(2, "first")
    make(2, "third")
    assert store.bytes == 4 * KIB
    assert make(2, "first") is first and make(1, "second") is not second
    assert second.held.sum() == 0


def test_what_does_not_fit_is_made_each_time_and_nothing_leaves_for_it(make, store):
    kept = make(3)
    assert make(5) is not make(5)
    assert make(3) is kept and store.bytes == 3 * KIB


def test_what_the_last_calls_of_a_model_used_stays(make, store):
    store.begin_call()
    large, small = make(5), make(3)
    for _ in range(CALLS):
        assert make(5) is large and make(3) is small
        store.begin_call()
    assert store.bytes == 8 * KIB
    store.begin_call()
    make(1)
    assert store.bytes == 4 * KIB and make(3) is small


def test_a_storage_counts_once_and_as_a_whole(store):
    whole = Holder(torch.zeros(2 * KIB, dtype=torch.uint8))

    @constant
    def view(first, of):
        return of.held[first : first + 1].expand(9)

    assert [view(each, whole).shape for each in range(3)] == [(9,)] * 3
    assert store.bytes == 2 * KIB


def test_what_a_value_was_made_of_counts(store):
    @constant
    def name(holder):
        return "none"

    name(Holder(torch.zeros(3 * KIB, dtype=torch.uint8)))
    assert store.bytes == 3 * KIB


def test_values_without_tensors_are_few_too(store):
    @constant
    def count(number):
        made.append(number)
        return None

    made = []
    for number in (*range(20), 19, 0):
        assert count(number) is None
    assert made == [*range(20), 0]


def test_what_a_graph_captures_is_not_kept(make, store, monkeypatch):
    """It is computed when the graph is replayed, and not before."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert make(1) is not make(1)
    assert store.bytes == 0


def test_a_pytorch_for_gpus_is_not_asked_for_graphs_where_there_is_none(make, monkeypatch):
    """It raises "CUDA driver version is insufficient" there."""

    def fail():
        raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", fail)
    assert make(1) is make(1)


def test_an_emptied_store_holds_nothing(make, store):
    kept = make(1)
    store.empty()
    assert store.bytes == 0 and make(1) is not kept


def test_threads_get_the_same_value(store):
    @constant
    def make(number):
        return torch.full((KIB,), number, dtype=torch.uint8)

    def ask():
        return [make(number % 7) for number in range(400)]

    for found in zip(*run_at_once(ask, ask, ask), strict=True):
        assert {int(each[0]) for each in found} == {int(found[0][0])}
    assert store.bytes <= 4 * KIB


def test_a_store_is_emptied_while_others_use_it(make, store):
    def empty():
        for _ in range(200):
            store.empty()

    def ask():
        return [make(1, name % 3).held.numel() for name in range(600)]

    found, *_ = run_at_once(ask, empty, partial(ask))
    assert set(found) == {KIB} and store.bytes <= 4 * KIB
    store.empty()
    assert store.bytes == 0


@pytest.fixture
def pauses(monkeypatch):
    """How deep pauses lie in each other, whenever one begins or ends."""
    depths = [0]

    @contextmanager
    def pause():
        depths.append(depths[-1] + 1)
        try:
            yield
        finally:
            depths.append(depths[-1] - 1)

    monkeypatch.setattr(constants, "PAUSES", [pause])
    return depths


def test_a_constant_is_made_in_one_pause_whatever_it_is_made_of(make, pauses):
    @constant
    def outer():
        return make(1, "one"), make(1, "other")

    for _ in range(2):
        outer()
        make(1, "one")
    assert pauses == [0, 1, 0]


def test_a_pause_ends_where_a_constant_fails(pauses, store):
    @constant
    def fail():
        raise ValueError("no value")

    for _ in range(2):
        with pytest.raises(ValueError, match="no value"):
            fail()
    assert pauses == [0, 1, 0, 1, 0]


def count_held():
    """Bytes of all tensors of this process."""
    gc.collect()
    tensors = (each for each in gc.get_objects() if issubclass(type(each), torch.Tensor))
    storages = (each.untyped_storage() for each in tensors if type(each) is torch.Tensor)
    return sum({each._cdata: each.nbytes() for each in storages}.values())


def plan(settings, grid, layers=4):
    for number in range(layers):
        layer = Layer(Stream(grid, after=7), CPU, channels=64, local_window=12, most_groups=1)
        draws = Draws((0, number), CPU)
        metric = torch.zeros(1, layer.stream.length, 4)
        plan_layer(settings, settings.find_targets(1, (1,)), layer, draws, metric)


@pytest.mark.thorough
def test_many_grids_hold_no_more_than_the_store_does():
    """Also in tensors that are not asked for through the store."""
    forget_constants()
    before = count_held()
    for width in range(40, 64, 4):
        for settings in (DownsampleSettings(), DownsampleSettings(factor=4.0), MergeSettings()):
            plan(settings, TokenGrid(40, width, 9))
    held = count_held() - before
    assert constants.STORE.bytes > MOST / 2, "the grids are too small to fill it"
    assert held <= MOST * 1.01  # and the logs of sizes
    forget_constants()
    assert count_held() == before
