"""Attention in parts is attention, on every kernel."""

import pytest
import torch
import torch.nn.functional as F
from token_merge.tome_core.partial_attention import (
    MASKED,
    attend_part,
    attend_part_by_matrices,
    attend_part_on_cuda,
    choose_kernel,
    has_cuda_kernel,
    join_parts,
)
from torch._subclasses.fake_tensor import FakeTensorMode

KERNELS = pytest.mark.parametrize("attend", [attend_part, attend_part_by_matrices])
SCALE = 0.2


def make_tensors(dtype=torch.float32):
    return (torch.randn(2, 3, length, 16).to(dtype) for length in (5, 9, 9))


@KERNELS
@pytest.mark.parametrize(
    ("dtype", "error"), [(torch.float32, 1e-5), (torch.float16, 5e-3), (torch.bfloat16, 4e-2)]
)
def test_two_parts_joined_are_attention_to_all_keys(attend, dtype, error):
    q, k, v = make_tensors(dtype)
    bias = torch.randn(2, 1, 1, 9)
    parts = [
        attend(q, k[:, :, keys], v[:, :, keys], bias[..., keys], SCALE)
        for keys in (slice(4), slice(4, 9))
    ]
    q, k, v, bias = (x.double() for x in (q, k, v, bias))
    exact = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=SCALE)
    torch.testing.assert_close(join_parts(*parts).double(), exact, atol=error, rtol=error)


@KERNELS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_part_without_any_key_to_read_weighs_nothing(attend, dtype):
    q, k, v = make_tensors(dtype)
    read = attend(q, k, v, None, SCALE)
    nothing = attend(q, k, v, torch.full((1, 1, 1, 9), MASKED), SCALE)
    exact = read[0].clone()
    assert torch.equal(join_parts(read, nothing), exact)
    assert torch.equal(join_parts(nothing, read), exact)


def test_expanded_keys_are_read_as_copies_of_them():
    q, k, v = make_tensors()
    k, v = (x[:1].expand(2, -1, -1, -1) for x in (k, v))
    out, lse = attend_part(q, k, v, None, SCALE)
    copied, lse_of_copies = attend_part(q, k.clone(), v.clone(), None, SCALE)
    torch.testing.assert_close((out, lse), (copied, lse_of_copies))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("with_bias", [True, False])
def test_a_gpus_kernel_takes_what_it_is_given(dtype, with_bias):
    """PyTorch checks the arguments of its kernels on tensors without a device, too."""
    with FakeTensorMode():
        q = torch.empty(2, 3, 5, 64, dtype=dtype, device="cuda")
        k = torch.empty(1, 3, 9, 64, dtype=dtype, device="cuda").expand(2, -1, -1, -1)
        bias = torch.empty(2, 1, 1, 9, device="cuda") if with_bias else None
        assert choose_kernel(q, k) is attend_part_on_cuda
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
        assert choose_kernel(q, q) is attend_part_by_matrices


@pytest.fixture
def asked_anew():
    """Whether a GPU has the kernel is asked once, and not kept from here."""
    has_cuda_kernel.cache_clear()
    yield
    has_cuda_kernel.cache_clear()


@pytest.mark.parametrize(
    ("capability", "dtype", "kernel"),
    [
        ((7, 5), torch.bfloat16, attend_part_by_matrices),
        ((7, 5), torch.float16, attend_part_on_cuda),
        ((7, 5), torch.float32, attend_part_on_cuda),
        ((8, 0), torch.bfloat16, attend_part_on_cuda),
        ((12, 0), torch.bfloat16, attend_part_on_cuda),
    ],
)
def test_an_old_gpu_has_no_kernel_for_bfloat16(capability, dtype, kernel, asked_anew, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    with FakeTensorMode():
        q = torch.empty(1, 1, 5, 64, dtype=dtype, device="cuda")
        assert choose_kernel(q, q) is kernel


@pytest.mark.parametrize(
    ("has_kernel", "kernel"), [(True, attend_part_on_cuda), (False, attend_part_by_matrices)]
)
def test_pytorch_is_asked_whether_an_amd_gpu_has_the_kernel(
    has_kernel, kernel, asked_anew, monkeypatch
):
    monkeypatch.setattr(torch.version, "hip", "6.4")
    monkeypatch.setattr(
        torch.backends.cuda, "can_use_efficient_attention", lambda params: has_kernel
    )
    with FakeTensorMode():
        q = torch.empty(1, 1, 5, 64, dtype=torch.float16, device="cuda")
        assert choose_kernel(q, q) is kernel
