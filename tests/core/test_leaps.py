from math import inf

import pytest
from token_merge.tome_core.schedule import find_leaps


@pytest.mark.parametrize(
    ("log_snr", "leaps"),
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
def test_a_leap_is_much_longer_than_the_step_before(log_snr, leaps):
    assert find_leaps(log_snr) == leaps
