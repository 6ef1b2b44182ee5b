"""Local windows in 8 bits by our kernels, computed by Triton's interpreter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.layers import LayerTokens, kernels_of_windows, plan_layer
from token_merge.nodes.kernels import shapes
from token_merge.nodes.kernels.usable import load_kernel
from token_merge.tome_core import DownsampleSettings, Draws, MergeSettings, Stream, TokenGrid
from token_merge.tome_core.windows import attend_densely
from token_merge.tome_core.windows.int8 import attend_in_int8, average_keys, round_rows

SLOW = pytest.mark.thorough


@pytest.fixture(scope="module")
def windows():
    pytest.importorskip("triton")
    return load_kernel("windows")


def make_plan(grid, before, settings, images):
    metric = torch.randn(images, grid.tokens, 8)
    draws = Draws((7,), torch.device("cpu"), 3)
    layer = LayerTokens(Stream(grid, before, 3), lambda: metric, draws, local_window=8)
    with kernels_of_windows():
        return replace(plan_layer(settings, layer), precision="int8")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_keys_are_rounded_as_in_the_emulation_to_the_bit(dtype, windows):
    k = (torch.randn(2, 70, 3, 40) * torch.logspace(-3, 3, 70)[:, None, None] + 5).to(dtype)
    k = k.transpose(1, 2)
    k[0, 0] = k[0, 0, :1]
    found = windows.round_and_scale(k, k, shapes.Shape(), rounds=True)
    numbers, steps = round_rows(k.float() - average_keys(k))
    assert torch.equal(found.k[..., :40], numbers)
    assert torch.equal(found.steps, steps[..., 0])
    assert not found.k[..., 40:].any()


@pytest.mark.parametrize(
    ("grid", "channels", "settings"),
    [
        (TokenGrid(12, 14), 40, DownsampleSettings()),
        (TokenGrid(12, 14), 16, MergeSettings(ratio=0.6)),
        pytest.param(TokenGrid(9, 14), 128, DownsampleSettings(), marks=SLOW),
        pytest.param(TokenGrid(9, 14), 128, MergeSettings(ratio=0.6), marks=SLOW),
        pytest.param(TokenGrid(12, 12, 3), 64, MergeSettings(), marks=SLOW),
    ],
    ids=str,
)
def test_windows_are_those_of_the_emulation(grid, channels, settings, windows):
    """In single precision. To round one number of a query otherwise would change 1e-4."""
    images = 1 if grid.frames > 1 else 2
    plan = make_plan(grid, 7, settings, images)
    q = torch.randn(images, 2, plan.geometry.stream.length, channels)
    k, v = torch.randn(2, images, 1, plan.geometry.stream.length, channels)
    given = plan, q, k + 3 * torch.randn(1, 1, 1, channels), v, None, 0.2
    found = windows.attend(*given)
    torch.testing.assert_close(found, attend_in_int8(*given), atol=1e-5, rtol=1e-5)


def test_windows_of_half_precision_are_those_of_the_emulation(windows):
    """The interpreter multiplies no numbers of bfloat16."""
    plan = make_plan(TokenGrid(12, 14), 7, DownsampleSettings(), 1)
    q, k, v = torch.randn(3, 1, 1, plan.geometry.stream.length, 64).half()
    given = plan, q, k, v, None, 0.125
    found, expected = windows.attend(*given), attend_in_int8(*given)
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=2e-3)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("settings", [DownsampleSettings(), MergeSettings(ratio=0.6)], ids=str)
@pytest.mark.parametrize("precision", ["exact", "int8"])
def test_sums_of_half_precision_round_and_do_not_overflow(
    precision, size, settings, windows, monkeypatch
):
    """As a GeForce makes them, of values that half precision may not hold."""
    plan = replace(make_plan(TokenGrid(12, 14), 7, settings, 1), precision=precision)
    q, k, v = torch.randn(3, 1, 1, plan.geometry.stream.length, 32)
    given = plan, q, k, v * size, None, 0.2
    expected = (attend_in_int8 if precision == "int8" else windows.attend)(*given)
    monkeypatch.setattr(shapes, "is_geforce", lambda device: True)
    found = windows.attend(*given)
    assert 0 < (found - expected).norm() / expected.norm() < 2**-9


@SLOW
def test_the_page_about_speed_says_how_much_this_rounds(windows, monkeypatch):
    plan = make_plan(TokenGrid(8, 10), 7, DownsampleSettings(), 1)
    q, k, v = torch.randn(3, 1, 1, plan.geometry.stream.length, 64)
    given = q, k, v, None, 0.125
    exact = attend_densely(plan, *(x.double() for x in (q, k, v)), None, 0.125)
    in_int8 = attend_in_int8(plan, *given)
    monkeypatch.setattr(shapes, "is_geforce", lambda device: True)
    in_half_sums = windows.attend(replace(plan, precision="exact"), *given)
    half, int8 = (
        f"{100 * ((found - exact).norm() / exact.norm()).item():.1g} %"
        for found in (in_half_sums, in_int8)
    )
    page = Path(__file__).parents[2] / "docs" / "speed.md"
    said = f"by {half}, and rounding queries and keys to INT8 changes them by {int8}."
    assert said in " ".join(page.read_text(encoding="utf-8").split())


def test_other_cards_of_a_geforce_s_generation_sum_so_with_int8_alone(monkeypatch):
    """An RTX 6000 Ada, for example."""
    monkeypatch.setattr(shapes, "find_capability", lambda device: (8, 9))
    exact, in_int8 = (
        shapes.choose_shape(torch.device("cpu"), 128, precision=precision)
        for precision in ("exact", "int8")
    )
    assert (exact.half_sums, in_int8.half_sums) == (False, True)


def test_weighed_keys_are_summed_in_half_precision_on_a_geforce(monkeypatch):
    weighed_keys = load_kernel("weighed_keys")
    q, (k, v) = torch.randn(1, 2, 70, 40), torch.randn(2, 1, 2, 33, 40)
    given = q, k, 1e6 * v, torch.arange(33)[None] % 4 + 1, 0.2
    expected = weighed_keys.attend_weighed(*given)
    monkeypatch.setattr(shapes, "is_geforce", lambda device: True)
    found = weighed_keys.attend_weighed(*given)
    assert 0 < (found - expected).norm() / expected.norm() < 2**-9
