"""Which of PyTorch's kernels computes attention over some of the keys, and what it is given."""

import pytest
import torch
from token_merge.tome_core.attention import partial
from token_merge.tome_core.attention.partial import (
    attend_part,
    attend_part_by_efficient,
    attend_part_by_flash,
    attend_part_by_matmul,
    choose_kernel,
    has_efficient,
    has_flash,
)
from torch._subclasses.fake_tensor import FakeTensorMode

SCALE = 0.2


def test_expanded_keys_are_read_as_copies_of_them():
    q, k, v = torch.randn(2, 3, 5, 16), *torch.randn(2, 1, 3, 9, 16).expand(-1, 2, -1, -1, -1)
    out, lse = attend_part(q, k, v, None, SCALE)
    copied, lse_of_copies = attend_part(q, k.clone(), v.clone(), None, SCALE)
    torch.testing.assert_close((out, lse), (copied, lse_of_copies))


@pytest.mark.parametrize("sides", [None, (1, 1, 1, 9), (4, 3, 5, 9)])
@pytest.mark.parametrize("most", [1, 60, 300])
def test_matrices_have_few_scores_in_memory_at_once(most, sides, monkeypatch):
    """Scores of 4 images, 3 heads, 5 queries and 9 keys."""
    q, (k, v) = torch.randn(4, 3, 5, 16), torch.randn(2, 1, 3, 9, 16).expand(-1, 4, -1, -1, -1)
    bias = None if sides is None else torch.randn(sides)
    expected = attend_part_by_matmul(q, k, v, bias, SCALE)
    counts, compute = [], partial._attend_by_matmul

    def count(q, k, *given):
        counts.append(q[..., 0].numel() * k.shape[2])
        return compute(q, k, *given)

    monkeypatch.setattr(partial, "_attend_by_matmul", count)
    monkeypatch.setattr(partial, "MOST_SCORES", most)
    torch.testing.assert_close(attend_part_by_matmul(q, k, v, bias, SCALE), expected)
    assert sum(counts) == 4 * 3 * 5 * 9
    assert max(counts) <= max(most, 3 * 9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("with_bias", [True, False])
def test_a_gpus_kernel_takes_what_it_is_given(dtype, with_bias):
    """PyTorch checks the arguments of its kernels on tensors without a device, too."""
    with FakeTensorMode():
        q = torch.empty(2, 3, 5, 64, dtype=dtype, device="cuda")
        k = torch.empty(1, 3, 9, 64, dtype=dtype, device="cuda").expand(2, -1, -1, -1)
        bias = torch.empty(2, 1, 1, 9, device="cuda") if with_bias else None
        flash = dtype != torch.float32 and not with_bias
        kernel = attend_part_by_flash if flash else attend_part_by_efficient
        assert choose_kernel(q, k, bias) is kernel
        out, lse = attend_part(q, k, k, bias, SCALE)
        assert out.shape == q.shape
        assert out.dtype == dtype
        assert lse.shape == (2, 3, 5)
        assert lse.dtype == torch.float32


@pytest.mark.parametrize(
    ("device", "dtype", "channels"),
    [("cuda", torch.float64, 64), ("cuda", torch.float16, 20), ("mps", torch.float16, 64)],
)
def test_what_a_gpus_kernel_does_not_take_is_computed_by_matrices(device, dtype, channels):
    with FakeTensorMode():
        q = torch.empty(1, 1, 5, channels, dtype=dtype, device=device)
        assert choose_kernel(q, q, None) is attend_part_by_matmul


@pytest.fixture
def asked_anew():
    """Whether a GPU has the kernel is asked once, and not kept from here."""
    has_efficient.cache_clear()
    has_flash.cache_clear()
    yield
    has_efficient.cache_clear()
    has_flash.cache_clear()


@pytest.mark.parametrize(
    ("capability", "dtype", "kernel"),
    [
        ((7, 5), torch.bfloat16, attend_part_by_matmul),
        ((7, 5), torch.float16, attend_part_by_efficient),
        ((7, 5), torch.float32, attend_part_by_efficient),
        ((8, 0), torch.bfloat16, attend_part_by_efficient),
        ((12, 0), torch.bfloat16, attend_part_by_efficient),
    ],
)
def test_an_old_gpu_has_no_kernel_for_bfloat16(capability, dtype, kernel, asked_anew, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    with FakeTensorMode():
        q = torch.empty(1, 1, 5, 64, dtype=dtype, device="cuda")
        assert choose_kernel(q, q, None) is kernel


@pytest.mark.parametrize(
    ("has_kernel", "kernel"), [(True, attend_part_by_efficient), (False, attend_part_by_matmul)]
)
def test_pytorch_is_asked_whether_an_amd_gpu_has_the_kernel(
    has_kernel, kernel, asked_anew, monkeypatch
):
    monkeypatch.setattr(torch.version, "hip", "6.4")
    monkeypatch.setattr(partial, "find_lse_unit", lambda device, dtype: 1.0)
    monkeypatch.setattr(
        torch.backends.cuda, "can_use_efficient_attention", lambda params: has_kernel
    )
    with FakeTensorMode():
        q = torch.empty(1, 1, 5, 64, dtype=torch.float16, device="cuda")
        assert choose_kernel(q, q, None) is kernel


@pytest.fixture
def some_gpu(asked_anew, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 9))


@pytest.mark.parametrize(
    ("has_kernel", "kernel"), [(True, attend_part_by_flash), (False, attend_part_by_efficient)]
)
def test_pytorch_is_asked_whether_a_gpu_has_flash_attention(
    has_kernel, kernel, some_gpu, monkeypatch
):
    monkeypatch.setattr(torch.backends.cuda, "can_use_flash_attention", lambda params: has_kernel)
    with FakeTensorMode():
        q = torch.empty(1, 1, 5, 64, dtype=torch.float16, device="cuda")
        assert choose_kernel(q, q, None) is kernel


def test_values_of_another_size_than_keys_are_not_for_flash_attention(some_gpu, monkeypatch):
    monkeypatch.setattr(torch.backends.cuda, "can_use_flash_attention", lambda params: True)
    with FakeTensorMode():
        q, v = (torch.empty(1, 1, 5, n, dtype=torch.float16, device="cuda") for n in (64, 32))
        assert choose_kernel(q, v, None) is attend_part_by_efficient


@pytest.mark.parametrize("arguments", [6, 7])
def test_older_versions_of_pytorch_are_asked_in_their_way(arguments, some_gpu, monkeypatch):
    def describe(*given):
        if len(given) != arguments:
            raise TypeError("incompatible constructor arguments")

    monkeypatch.setattr(torch.backends.cuda, "SDPAParams", describe)
    monkeypatch.setattr(torch.backends.cuda, "can_use_flash_attention", lambda params: True)
    with FakeTensorMode():
        q = torch.empty(1, 1, 5, 64, dtype=torch.float16, device="cuda")
        assert choose_kernel(q, q, None) is attend_part_by_flash
