from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core.schedule import (
    PercentRange,
    count_steps_before,
    find_long_steps,
    find_share_left,
    find_step,
)


def linear(percent: float) -> float:
    return 10.0 * (1.0 - percent)


def test_the_whole_schedule_holds_every_step():
    assert all(sigma in PercentRange().find_sigmas(linear) for sigma in (10.0, 5.0, 0.1))


def test_a_first_sigma_that_rounding_put_above_the_schedule_is_in_it():
    assert 10.000001 in PercentRange(0.0, 0.5).find_sigmas(linear)
    assert 10.000001 not in PercentRange(0.1, 0.5).find_sigmas(linear)


@given(st.floats(0.01, 0.99), st.floats(0.001, 10.0))
def test_ranges_that_touch_share_no_step_and_leave_none_out(split, sigma):
    before, after = PercentRange(0.0, split), PercentRange(split, 1.0)
    assert (sigma in before.find_sigmas(linear)) != (sigma in after.find_sigmas(linear))
    assert not before.overlaps(after)


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (0.5, 0.5, "start_percent is 0.5, expected less than end_percent, which is 0.5"),
        (0.8, 0.2, "start_percent is 0.8"),
        (-0.1, 1.0, "start_percent is -0.1, expected 0.0 to 1.0"),
        (0.0, 1.5, "end_percent is 1.5, expected 0.0 to 1.0"),
        (float("nan"), 1.0, "start_percent is nan"),
        ("0.5", 1.0, "start_percent is '0.5', expected 0.0 to 1.0"),
        (0.0, None, "end_percent is None, expected 0.0 to 1.0"),
    ],
)
def test_a_bad_window_is_refused_by_name_and_value(start, end, message):
    with pytest.raises(ValueError, match=message):
        PercentRange(start, end)


def test_overlap():
    assert PercentRange(0.0, 0.6).overlaps(PercentRange(0.5, 1.0))


@pytest.mark.parametrize(
    ("sigma", "step"), [(14.6, 0), (7.0, 1), (9.0, 0), (6.9, 1), (2.0, 2), (0.5, 2), (99.0, 0)]
)
def test_a_sigma_between_two_listed_ones_belongs_to_the_step_before(sigma, step):
    assert find_step(sigma, (14.6, 7.0, 2.0, 0.0)[:3]) == step


def test_float_noise_does_not_change_the_step():
    assert find_step(7.0 * (1 - 1e-6), (14.6, 7.0, 2.0)) == 1
    assert find_step(7.0 * (1 + 1e-6), (14.6, 7.0, 2.0)) == 1


def test_without_listed_sigmas_every_call_is_the_first_step():
    assert find_step(3.0, ()) == 0


LEVELS = [0.1, 0.2, 0.4, 0.8, 1.6]


@pytest.mark.parametrize(
    ("sigma", "left"),
    [(0.0, 0.0), (0.05, 0.2), (0.1, 0.2), (0.3, 0.5), (0.4, 0.6), (1.6, 1.0), (99.0, 1.0)],
)
def test_what_is_left_of_a_schedule_is_the_place_among_the_models_levels(sigma, left):
    assert find_share_left(sigma, LEVELS) == pytest.approx(left)


@pytest.mark.parametrize(
    ("left", "before"),
    [
        ((1.0, 0.5, 0.0), 0),
        ((0.5, 0.25, 0.0), 2),  # the end of 4 steps
        ((0.75, 0.5, 0.25), 1),  # the middle of them
        ((0.625, 0.5, 0.375, 0.25, 0.125, 0.0), 3),
        ((0.376, 0.25, 0.125, 0.001, 0.0), 5),  # "normal", 8 steps
    ],
)
def test_even_steps_tell_how_many_came_before(left, before):
    assert count_steps_before(left) == before


@pytest.mark.parametrize(
    ("left", "before"),
    [((1.0, 0.7, 0.2, 0.0), 0), ((0.7, 0.2, 0.0), 2), ((0.4, 0.1, 0.02, 0.001, 0.0), 4)],
)
def test_a_run_of_uneven_steps_is_taken_for_the_second_half(left, before):
    assert count_steps_before(left) == before


@pytest.mark.parametrize("left", [(1.0, 0.0), (1.0,), ()])
def test_a_run_of_less_than_two_steps_tells_nothing(left):
    assert count_steps_before(left) is None


def test_equal_levels_are_no_even_schedule():
    assert count_steps_before((0.5, 0.5, 0.5)) == 2


@pytest.mark.parametrize(
    ("log_snr", "numbers"),
    [
        ([-3, -2, -1, 0, 4, inf], {3}),
        ([-3, -2, -1, 0, 2, 3], set()),
        ([-inf, -2, -1, 5, inf], {2}),  # a flow begins with noise alone
        ([-3, -2, -1, inf], set()),
        ([4, 2, 1, 0.9], set()),  # from the picture to the noise
        ([-3, -3, -2], set()),
        ([], set()),
        ([1.0], set()),
    ],
)
def test_a_long_step_is_much_longer_than_the_step_before(log_snr, numbers):
    assert find_long_steps(log_snr) == numbers
