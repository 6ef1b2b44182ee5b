"""Attention in parts is attention, on every kernel."""

import pytest
import torch
import torch.nn.functional as F
from token_merge.tome_core.attention_kernels import MASKED, attend_part, attend_part_by_matrices
from token_merge.tome_core.partial_attention import Term, sum_terms

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
    torch.testing.assert_close(
        sum_terms([Term([each]) for each in parts]).double(), exact, atol=error, rtol=error
    )


@KERNELS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_part_without_any_key_to_read_weighs_nothing(attend, dtype):
    q, k, v = make_tensors(dtype)
    read = attend(q, k, v, None, SCALE)
    nothing = attend(q, k, v, torch.full((1, 1, 1, 9), MASKED), SCALE)
    exact = read[0].clone()
    assert torch.equal(sum_terms([Term([read]), Term([nothing])]), exact)
    assert torch.equal(sum_terms([Term([nothing]), Term([read])]), exact)


@KERNELS
def test_keys_are_weighed_and_others_are_taken_off(attend):
    """Four keys weigh three times; two of them are taken off, and read with their weight of one."""
    q, k, v = make_tensors()
    weights = torch.tensor([1.0, 1.0, 3.0, 3.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    exact = F.scaled_dot_product_attention(q, k, v, attn_mask=weights.log()[None], scale=SCALE)
    log_3 = torch.full((1, 1, 1, 2), 3.0).log()
    read = [
        Term([attend(q, k[:, :, keys], v[:, :, keys], bias, SCALE)], size)
        for keys, bias, size in (
            (slice(2), None, 1),
            (slice(2, 6), None, 3),
            (slice(4, 6), None, 1),
            (slice(4, 6), log_3, 1),
        )
    ]
    torch.testing.assert_close(sum_terms(read[:3], taken_off=read[3]), exact)


def test_rows_of_a_term_may_come_a_few_at_a_time():
    q, k, v = make_tensors()
    whole = [attend_part(q, x, y, None, SCALE) for x, y in ((k, v), (k + 1, v - 1))]
    pieces = [
        (out.clone(), lse.clone()) for out, lse in zip(*(x.split(1) for x in whole[1]), strict=True)
    ]
    first = whole[0][0].clone(), whole[0][1].clone()
    joined = sum_terms([Term([first]), Term(pieces)])
    torch.testing.assert_close(joined, sum_terms([Term([each]) for each in whole]))
