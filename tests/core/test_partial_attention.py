"""Attention in parts is attention, on every kernel."""

import pytest
import torch
import torch.nn.functional as F
from token_merge.tome_core.attention_kernels import MASKED, attend_part, attend_part_by_matrices
from token_merge.tome_core.partial_attention import exchange_keys, join_parts, weigh_part

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
    joined = join_parts(*parts)[0]
    torch.testing.assert_close(joined.double(), exact, atol=error, rtol=error)


@KERNELS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_part_without_any_key_to_read_weighs_nothing(attend, dtype):
    q, k, v = make_tensors(dtype)
    read = attend(q, k, v, None, SCALE)
    nothing = attend(q, k, v, torch.full((1, 1, 1, 9), MASKED), SCALE)
    exact = read[0].clone()
    assert torch.equal(join_parts(read, nothing)[0], exact)
    assert torch.equal(join_parts(nothing, read)[0], exact)


@KERNELS
def test_keys_that_stand_for_several_tokens_weigh_as_many(attend):
    q, k, v = make_tensors()
    weights = torch.tensor([1.0] * 4 + [3.0] * 5)
    exact = F.scaled_dot_product_attention(q, k, v, attn_mask=weights.log()[None], scale=SCALE)
    parts = [
        weigh_part(attend(q, k[:, :, keys], v[:, :, keys], None, SCALE), size)
        for keys, size in ((slice(4), 1), (slice(4, 9), 3))
    ]
    out, lse = join_parts(*parts)
    torch.testing.assert_close(out, exact)
    scores = (q @ k.mT) * SCALE + weights.log()
    torch.testing.assert_close(lse, scores.logsumexp(-1))


@KERNELS
def test_keys_are_taken_off_and_others_read_in_their_place(attend):
    """Two of the seven keys weigh three times; they are taken off, and two others are read."""
    q, k, v = make_tensors()
    kept = [0, 1, 2, 3, 4, 7, 8]
    exact = F.scaled_dot_product_attention(q, k[:, :, kept], v[:, :, kept], scale=SCALE)
    weights = torch.tensor([1.0] * 5 + [3.0] * 2).log()[None, None, None]
    whole = attend(q, k[:, :, :7], v[:, :, :7], weights, SCALE)
    taken = weigh_part(attend(q, k[:, :, 5:7], v[:, :, 5:7], None, SCALE), 3)
    added = attend(q, k[:, :, 7:], v[:, :, 7:], None, SCALE)
    # Some rows at a time, and not as many of each.
    pieces = list(zip(*(x.split(1) for x in taken), strict=True))
    torch.testing.assert_close(exchange_keys(whole, pieces, [added]), exact)


@KERNELS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [4, 16, 64])
def test_a_heavy_key_taken_off_costs_a_roundoff_for_each_token(attend, dtype, size):
    """The queries read hardly anything else, so that nearly all is taken off."""
    q = torch.ones(1, 1, 50, 16).to(dtype)
    k = torch.cat([q[:, :, :1], -q[:, :, :1]], dim=2)
    v = torch.randn(1, 1, 2, 16).to(dtype)
    one = attend(q, k[:, :, :1], v[:, :, :1], None, SCALE)
    heavy = weigh_part(one, size)
    whole = join_parts(
        tuple(x.clone() for x in heavy), attend(q, k[:, :, 1:], v[:, :, 1:], None, SCALE)
    )
    exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), scale=SCALE)
    error = (exchange_keys(whole, [heavy], [one]).double() - exact).abs().max()
    # The log of a sum has an error, too: hence twice.
    assert error <= 2 * (size + 1) * torch.finfo(dtype).eps * v.abs().max()
