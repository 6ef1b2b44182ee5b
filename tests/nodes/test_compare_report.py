"""What a report says of given times and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from support.gpu_tensor import GpuTensor
from support.other_device import OtherDevice
from token_merge.nodes.comparison.report import describe_results, measure_psnr
from token_merge.nodes.comparison.run import RunResult, TwoResults

RESULT = torch.linspace(-1, 3, 64).reshape(1, 4, 4, 4)


def model(
    rounds: Sequence[Sequence[float]], result: torch.Tensor = RESULT, peak: int | None = None
) -> TwoResults:
    first, second = (RunResult({"samples": result}, tuple(steps), peak) for steps in rounds)
    return first, second


@pytest.mark.parametrize(
    ("patched", "said"),
    [
        ([[0.5], [0.4]], "2.22x faster (2.00 to 2.50), 40.0 dB (small differences)"),
        ([[0.5], [0.48]], "2.04x faster (2.00 to 2.08), 40.0 dB (small differences)"),
        ([[1.1], [1.2]], "0.87x, slower (0.83 to 0.91), 40.0 dB (small differences)"),
        (
            [[1.01], [0.95]],
            "1.02x, no clear difference (0.99 to 1.05), 40.0 dB (small differences)",
        ),
        ([[1.0], []], "Speed was not measured: no step was computed"),
    ],
)
def test_the_verdict_rests_on_both_rounds(patched, said):
    lines = describe_results(model([[1.0], [1.0]]), model(patched, RESULT + 0.04))
    assert lines[0] == said
    assert ("do not agree" in lines[1]) == (patched == [[0.5], [0.4]])


@pytest.mark.parametrize("steps", [[0.5], []])
def test_models_that_give_the_same_latent_are_never_called_faster(steps):
    unpatched, patched = model([[1.0], [1.0]]), model([steps, steps])
    said = "The latents are identical: patched_model is not patched, or its patch has no effect"
    assert describe_results(unpatched, patched)[0] == said
    idle = tuple(replace(run, lines=(("Token Merge", "no layer"),)) for run in patched)
    assert describe_results(unpatched, idle)[0] == "Nothing was reduced: the latents are identical"


def test_a_node_that_acts_in_a_part_of_the_steps_is_judged_by_all_of_them():
    lines = describe_results(model([[1.0, 1.0, 1.0]] * 2), model([[0.4, 1.0, 1.0]] * 2))
    assert "Seconds per step: unpatched 1 s, patched 0.8 s" in lines


def test_psnr_takes_the_range_of_the_original_latent_as_its_peak():
    # The range is 4, the error 0.04 everywhere: 20 log10(4 / 0.04).
    assert measure_psnr(RESULT + 0.04, RESULT) == pytest.approx(40, abs=1e-3)
    assert measure_psnr(RESULT, RESULT) == float("inf")


class WithoutFloat64(OtherDevice):
    """As on Apple's and many of Intel's GPUs."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.double and isinstance(args[0], GpuTensor):
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        return super().__torch_function__(func, types, args, kwargs)


def test_latents_on_a_device_without_float64_are_compared():
    with WithoutFloat64():
        found = measure_psnr(GpuTensor(RESULT + 0.04), GpuTensor(RESULT))
    assert found == pytest.approx(40, abs=1e-3)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (RESULT, "identical"),
        (RESULT + 0.02, "PSNR 46.0 dB (hard to tell apart)"),
        (RESULT + 0.04, "PSNR 40.0 dB (small differences)"),
        (RESULT + 0.4, "PSNR 20.0 dB (clear differences)"),
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
    assert "no PSNR, all values of the unpatched model's latent are equal but for rounding" in said


def test_a_small_latent_is_not_constant():
    lines = describe_results(model([[1.0]] * 2, RESULT * 1e-7), model([[1.0]] * 2, RESULT * 2e-7))
    assert any("PSNR" in line and "dB" in line for line in lines)


def test_peak_memory_is_told_where_it_was_measured():
    lines = describe_results(model([[1.0]] * 2, peak=2**32), model([[1.0]] * 2, peak=2**31))
    assert "Peak memory: unpatched 4.00 GiB, patched 2.00 GiB, 50%" in lines
