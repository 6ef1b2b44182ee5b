"""Attention in parts is attention, on every kernel."""

import pytest
import torch
import torch.nn.functional as F
from token_merge.tome_core.attention.joining import join_parts
from token_merge.tome_core.attention.partial import MASKED, attend_part, attend_part_by_matmul

KERNELS = pytest.mark.parametrize("attend", [attend_part, attend_part_by_matmul])
SCALE = 0.2


def make_tensors(dtype=torch.float32):
    return (torch.randn(2, 3, length, 16).to(dtype) for length in (5, 9, 9))


@KERNELS
@pytest.mark.parametrize(
    ("dtype", "error"), [(torch.float32, 1e-5), (torch.float16, 5e-3), (torch.bfloat16, 4e-2)]
)
def test_parts_joined_are_attention_to_all_keys(attend, dtype, error):
    q, k, v = make_tensors(dtype)
    bias = torch.randn(2, 1, 1, 9)
    parts = [
        attend(q, k[:, :, keys], v[:, :, keys], bias[..., keys], SCALE)
        for keys in (slice(4), slice(4, 6), slice(6, 9))
    ]
    q, k, v, bias = (x.double() for x in (q, k, v, bias))
    exact = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=SCALE)
    joined, _ = join_parts(parts, (1.0, 1.0, 1.0))
    assert joined.dtype == dtype
    torch.testing.assert_close(joined.double(), exact, atol=error, rtol=error)


@KERNELS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_part_without_any_key_to_read_weighs_nothing(attend, dtype):
    q, k, v = make_tensors(dtype)
    read = attend(q, k, v, None, SCALE)
    nothing = attend(q, k, v, torch.full((1, 1, 1, 9), MASKED), SCALE)
    assert torch.equal(join_parts([read, nothing], (1.0, 16.0))[0], read[0])
    assert torch.equal(join_parts([nothing, read], (16.0, 1.0))[0], read[0])


@KERNELS
def test_keys_that_stand_for_several_tokens_weigh_as_many(attend):
    q, k, v = make_tensors()
    weights = torch.tensor([1.0] * 4 + [3.0] * 5)
    exact = F.scaled_dot_product_attention(q, k, v, attn_mask=weights.log()[None], scale=SCALE)
    parts = [
        attend(q, k[:, :, keys], v[:, :, keys], None, SCALE) for keys in (slice(4), slice(4, 9))
    ]
    torch.testing.assert_close(join_parts(parts, (1.0, 3.0))[0], exact)


def test_parts_that_are_joined_are_a_part_again():
    q, k, v = make_tensors()
    first, second, third = (
        attend_part(q, k[:, :, keys], v[:, :, keys], None, SCALE)
        for keys in (slice(4), slice(4, 6), slice(6, 9))
    )
    out, logs = join_parts([first, second], (1.0, 3.0))
    found = join_parts([(out, logs.logsumexp(dim=0)), third], (1.0, 2.0))[0]
    torch.testing.assert_close(found, join_parts([first, second, third], (1.0, 3.0, 2.0))[0])


@KERNELS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_heavy_keys_that_nobody_looks_at_cost_no_rounding(attend, dtype):
    q = torch.ones(1, 1, 50, 16).to(dtype)
    k = torch.cat([q[:, :, :1], -9 * q[:, :, :1]], dim=2)
    v = torch.randn(1, 1, 2, 16).to(dtype)
    near, far = (attend(q, k[:, :, some], v[:, :, some], None, SCALE) for some in ([0], [1]))
    joined, _ = join_parts([near, far], (1.0, 64.0))
    assert torch.equal(joined, v[:, :, :1].expand_as(joined))
