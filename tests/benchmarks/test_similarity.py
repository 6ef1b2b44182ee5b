"""Merging among neighbours finds pairs about as alike as comparing with all tokens does."""

import pytest

from benchmarks.speed import similarity


@pytest.mark.parametrize("noise", similarity.NOISE_LEVELS)
def test_local_matching_keeps_the_similarity_of_photographs(noise):
    measured = similarity.measure(side=64, ratio=0.5, noise=noise)
    assert 0.95 <= measured.kept <= 1.0
    assert measured.everywhere > 0.5, "these are not features of a picture"
