"""What a report says of given times and results."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from token_merge.nodes.comparison.report import describe_results, measure_psnr
from token_merge.nodes.comparison.run import Rounds, Run

RESULT = torch.linspace(-1, 3, 64).reshape(1, 4, 4, 4)


def model(
    rounds: Sequence[Sequence[float]], result: torch.Tensor = RESULT, peak: int | None = None
) -> Rounds:
    first, second = (Run({"samples": result}, tuple(steps), peak) for steps in rounds)
    return first, second


@pytest.mark.parametrize(
    ("patched", "said"),
    [
        (
            [[0.5], [0.4]],
            "Faster than the original model: 2.22x (2.00 to 2.50). The two rounds do not agree",
        ),
        ([[0.5], [0.48]], "Faster than the original model: 2.04x (2.00 to 2.08)"),
        ([[1.1], [1.2]], "Slower than the original model: 0.87x (0.83 to 0.91)"),
        ([[1.01], [0.95]], "No clear difference in speed: 1.02x (0.99 to 1.05)"),
        ([[1.0], []], "Speed was not measured: at least 2 steps are needed"),
    ],
)
def test_the_verdict_rests_on_both_rounds(patched, said):
    verdict = describe_results(model([[1.0], [1.0]]), model(patched))[0]
    assert verdict.startswith(said)
    assert ("do not agree" in verdict) == ("do not agree" in said)


def test_a_node_that_acts_in_a_part_of_the_steps_is_judged_by_all_of_them():
    lines = describe_results(model([[1.0, 1.0, 1.0]] * 2), model([[0.4, 1.0, 1.0]] * 2))
    assert "Seconds per step: unpatched 1 s, patched 0.8 s, 1.25x (1.25 to 1.25)" in lines


def test_psnr_takes_the_range_of_the_original_latent_as_its_peak():
    # The range is 4, the error 0.04 everywhere: 20 log10(4 / 0.04).
    assert measure_psnr(RESULT + 0.04, RESULT) == pytest.approx(40, abs=1e-3)
    assert measure_psnr(RESULT, RESULT) == float("inf")


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (RESULT, "identical"),
        (RESULT + 0.04, "PSNR 40.0 dB"),
        (RESULT * float("nan"), "not comparable, some values are not numbers"),
        (RESULT[..., :2], "not comparable, the sizes differ"),
    ],
)
def test_the_difference_of_the_results_is_told(result, said):
    lines = describe_results(model([[1.0]] * 2), model([[1.0]] * 2, result))
    assert f"Difference of the latents: {said}" in lines


@pytest.mark.parametrize("unpatched", [torch.full_like(RESULT, 0.3), torch.zeros_like(RESULT)])
@pytest.mark.parametrize("rounding", [0.0, 1e-7])
def test_a_constant_latent_has_no_range_to_compare_with(unpatched, rounding):
    unpatched = unpatched + rounding * RESULT
    lines = describe_results(model([[1.0]] * 2, unpatched), model([[1.0]] * 2))
    (said,) = (line for line in lines if "Difference" in line)
    assert "no PSNR, all values of the original model's latent are equal but for rounding" in said


def test_a_small_latent_is_not_constant():
    lines = describe_results(model([[1.0]] * 2, RESULT * 1e-7), model([[1.0]] * 2, RESULT * 2e-7))
    assert any("PSNR" in line and "dB" in line for line in lines)


def test_peak_memory_is_told_where_it_was_measured():
    lines = describe_results(model([[1.0]] * 2, peak=2**32), model([[1.0]] * 2, peak=2**31))
    assert "Peak memory: unpatched 4.00 GiB, patched 2.00 GiB, 50%" in lines
