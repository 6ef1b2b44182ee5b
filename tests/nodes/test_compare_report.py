"""What a report says of given times and results, and how it is drawn."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from token_merge.nodes.comparison.difference import measure_psnr
from token_merge.nodes.comparison.report import Report, write_report
from token_merge.nodes.comparison.runs import Comparison, ModelRuns, TimedRun
from token_merge.nodes.comparison.table import draw_table

RESULT = torch.linspace(-1, 3, 64).reshape(1, 4, 4, 4)


def model(
    rounds: Sequence[Sequence[float]], result: torch.Tensor = RESULT, peak: int | None = None
) -> ModelRuns:
    first, second = (TimedRun({"samples": result}, tuple(steps), peak) for steps in rounds)
    return ModelRuns((first, second), lines=())


def report(plain: ModelRuns, patched: ModelRuns) -> Report:
    return write_report(Comparison(plain, patched), facts=())


def figures(written: Report) -> dict[str, tuple[str, str, str]]:
    return {each.name: (each.plain, each.patched, each.change) for each in written.figures}


@pytest.mark.parametrize(
    ("patched", "said"),
    [
        ([[0.5], [0.4]], "Faster than plain: 2.22x (2.00 to 2.50). The two rounds do not agree"),
        ([[0.5], [0.48]], "Faster than plain: 2.04x (2.00 to 2.08)"),
        ([[1.1], [1.2]], "Slower than plain: 0.87x (0.83 to 0.91)"),
        ([[1.01], [0.95]], "No clear difference in speed: 1.02x (0.99 to 1.05)"),
        ([[1.0], []], "Speed was not measured: at least 2 steps are needed"),
    ],
)
def test_the_verdict_rests_on_both_rounds(patched, said):
    verdict = report(model([[1.0], [1.0]]), model(patched)).verdict
    assert verdict.startswith(said)
    assert ("do not agree" in verdict) == ("do not agree" in said)


def test_the_mean_holds_all_steps_and_the_median_the_usual_one():
    """A node that acts in a part of the steps: the median alone would hide what a run gains."""
    plain = model([[1.0, 1.0, 1.0]] * 2)
    patched = model([[0.4, 1.0, 1.0]] * 2)
    rows = figures(report(plain, patched))
    assert rows["Seconds per step"] == ("1 s", "0.8 s", "1.25x (1.25 to 1.25)")
    assert rows["Median step"] == ("1 s", "1 s", "1.00x (1.00 to 1.00)")


def test_psnr_takes_the_range_of_the_plain_latent_as_its_peak():
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
    rows = figures(report(model([[1.0]] * 2), model([[1.0]] * 2, result)))
    assert rows["Difference of the latents"] == ("", "", said)


def test_peak_memory_is_told_where_it_was_measured():
    rows = figures(report(model([[1.0]] * 2, peak=2**32), model([[1.0]] * 2, peak=2**31)))
    assert rows["Peak memory"] == ("4.00 GiB", "2.00 GiB", "50%")


def test_a_long_text_is_broken_so_that_it_fits():
    short, long = (
        draw_table(Report("Faster", (), (("Token Merge", text),), ()))
        for text in ("3 layers", "3 layers skipped because " * 20)
    )
    assert long.shape[2] == short.shape[2] == 1024
    assert long.shape[1] > short.shape[1]
    background = long[0, 0, 0]
    assert torch.equal(long[0, :, -16:], background.expand_as(long[0, :, -16:]))
