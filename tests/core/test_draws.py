import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core import Draws

CPU = torch.device("cpu")
IDENTITIES = st.tuples(st.integers(0, 2**64 - 1), st.floats(1e-3, 100.0), st.integers(0, 99))


def test_the_numbers_are_these_on_every_device_and_in_every_release():
    """A picture depends on them: they may not change by accident."""
    hashes = Draws((7, 14.6, "input", 1, 0), CPU).hash_numbers(3)
    assert hashes.tolist() == [
        -3266750885058175933,
        -4093024244270727899,
        -878322219944110942,
    ]


@given(IDENTITIES, st.integers(1, 5000))
def test_no_two_numbers_have_the_same_hash(identity, count):
    assert len(Draws(identity, CPU).hash_numbers(count).unique()) == count


@given(IDENTITIES, st.integers(1, 300))
def test_an_order_holds_every_number_once(identity, count):
    order = Draws(identity, CPU).draw_order(count)
    assert torch.equal(order.sort().values, torch.arange(count))


@given(IDENTITIES, st.lists(st.integers(1, 50), min_size=1, max_size=50))
def test_a_draw_lies_below_its_bound(identity, bounds):
    most = torch.tensor(bounds)
    drawn = Draws(identity, CPU).draw_below(most)
    assert ((drawn >= 0) & (drawn < most)).all()


@pytest.mark.parametrize("most", [2, 3, 4, 9, 16, 64])
def test_draws_are_uniform_over_cells_and_over_identities(most):
    cells = torch.full((4096,), most)
    of_cells = Draws((0,), CPU).draw_below(cells)
    of_identities = torch.stack([Draws((n,), CPU).draw_below(cells[:1]) for n in range(4096)])
    for drawn in (of_cells, of_identities.flatten()):
        counts = drawn.bincount(minlength=most).double()
        expected = 4096 / most
        # Chi-squared has a mean of most - 1; this bound is passed with p < 1e-6 only.
        chi_squared = ((counts - expected) ** 2 / expected).sum().item()
        assert chi_squared < most + 7 * (2 * most) ** 0.5 + 10


@pytest.mark.parametrize("other", [(1, 5.0, "a"), (0, 5.0001, "a"), (0, 5.0, "b")])
def test_seed_noise_level_and_layer_each_draw_other_numbers(other):
    """Two independent draws of 4 agree in a quarter of the cells."""
    cells = torch.full((4096,), 4)
    drawn = [Draws(each, CPU).draw_below(cells) for each in ((0, 5.0, "a"), other)]
    assert drawn[0].eq(drawn[1]).double().mean().item() == pytest.approx(0.25, abs=0.04)


def test_neighbouring_cells_draw_independently():
    drawn = Draws((0,), CPU).draw_below(torch.full((4096,), 4))
    pairs = (drawn[:-1] * 4 + drawn[1:]).bincount(minlength=16) / 4095
    assert (pairs - 1 / 16).abs().max() < 0.02


def test_the_global_random_state_is_not_touched():
    before = torch.get_rng_state()
    Draws((0,), CPU).draw_order(64)
    assert torch.equal(torch.get_rng_state(), before)
