"""What one operation costs a GPU: kernels, bytes and floating-point operations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from support.gpu_attention import take_pytorch_attention
from torch import Tensor
from torch.nn import functional as F

from benchmarks.speed.cost.cases import QUICK_SHAPES, SETTINGS
from benchmarks.speed.cost.counting import Count
from benchmarks.speed.cost.kernels import Kernel
from benchmarks.speed.memory import peak_memory

shapes = pytest.mark.parametrize("shape", QUICK_SHAPES, ids=lambda shape: shape.name)
settings = pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)


@pytest.fixture(autouse=True)
def pytorch_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    take_pytorch_attention(monkeypatch)


def count(function: Callable[..., object], *args: object) -> list[Kernel]:
    with Count() as counted:
        function(*args)
    return [kernel for _, kernel in counted.kernels]


def test_a_matrix_product_reads_both_and_writes_one() -> None:
    (kernel,) = count(torch.mm, torch.ones(30, 40), torch.ones(40, 50))
    assert kernel == Kernel("mm", 1, 4 * (30 * 40 + 40 * 50 + 30 * 50), 2 * 30 * 40 * 50)


def test_what_consists_of_others_counts_as_those() -> None:
    with torch.inference_mode():
        kernels = count(F.linear, torch.ones(2, 3, 8), torch.ones(5, 8), torch.ones(5))
    assert [each.name for each in kernels] == ["addmm"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.view(8, 6).mT[None, 2:],
        lambda x: x.expand(3, 6, 8),
        lambda x: torch.empty_like(x),
        lambda x: x.new_empty(3),
        lambda x: x.contiguous(),
        lambda x: x[:0] + 1,
    ],
)
def test_what_computes_nothing_does_not_count(function: Callable[[Tensor], Tensor]) -> None:
    assert count(function, torch.ones(6, 8)) == []


@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        (lambda x: x + 1, 2 * 64),
        (lambda x: x[:, :1].expand(8, 8) + 1, 8 + 64),
        (lambda x: x[0].copy_(x[1]), 2 * 8),
        (lambda x: x.zero_(), 64),
        (lambda x: x.mul_(2), 2 * 64),
        (lambda x: x.index_select(0, torch.tensor([1, 2], dtype=torch.int32)), 2 * 16 + 2),
        (lambda x: x.index_copy_(0, torch.tensor([1]), torch.ones(1, 8)), 2 * (8 + 2)),
    ],
)
def test_bytes_are_those_of_the_numbers_that_are_touched(
    function: Callable[[Tensor], Tensor], numbers: int
) -> None:
    given = torch.ones(8, 8)
    *_, kernel = count(function, given)
    assert kernel.bytes == 4 * numbers


def test_attention_computes_as_many_channels_as_its_kernel_has() -> None:
    def attend(channels: int) -> int:
        return count_flash(128, channels).flops

    assert attend(64) == 4 * 2 * 128 * 16 * 64
    assert attend(40) == attend(64)
    assert attend(136) == attend(192)


def test_attention_computes_as_many_queries_as_a_multiple_of_its_rows() -> None:
    assert count_flash(1).flops == count_flash(64).flops == count_flash(128).flops
    assert count_flash(129).flops == 2 * count_flash(128).flops


def test_keys_that_overlap_are_read_from_memory_once() -> None:
    keys = torch.ones(100, 64, device="meta").as_strided((1, 10, 55, 64), (0, 5 * 64, 64, 1))
    apart = count_flash(128, heads=10, keys=55).bytes
    q = torch.ones(1, 10, 128, 64, device="meta")
    (together,) = count(torch.ops.aten._scaled_dot_product_flash_attention, q, keys, keys)
    assert apart - together.bytes == 2 * 4 * 64 * (550 - 100)


def count_flash(queries: int, channels: int = 64, heads: int = 2, keys: int = 16) -> Kernel:
    q = torch.ones(1, heads, queries, channels, device="meta")
    k, v = torch.ones(2, 1, heads, keys, channels, device="meta")
    (found,) = count(torch.ops.aten._scaled_dot_product_flash_attention, q, k, v)
    return found


def test_memory_is_that_of_the_allocators_record() -> None:
    def work(x: Tensor) -> Tensor:
        y = x @ x
        z = y.mT + 1
        del y
        x += z
        return torch.cat([z, x]).softmax(-1)

    with peak_memory(torch.device("cpu")) as peak:
        work(torch.ones(500, 500))
    with Count() as counted:
        work(torch.ones(500, 500))
    assert counted.memory.peak == peak.bytes
