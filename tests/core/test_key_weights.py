import pytest
import torch
import torch.nn.functional as F
from token_merge.tome_core.attention import attend_weighed
from token_merge.tome_core.attention.key_weights import (
    ALIGNMENT,
    _logs,
    add_size_channels,
    add_sizes_to_mask,
    find_log_sizes,
)


def tensors(channels: int):
    q, k, v = torch.randn(2, 3, 5, channels), *torch.randn(2, 2, 3, 7, channels)
    return q, k, v, torch.randint(1, 9, (2, 7))


@pytest.mark.parametrize("channels", [8, 40, 64, 5])
@pytest.mark.parametrize("times", [1.0, 0.7])
def test_extra_channels_do_what_a_mask_of_log_sizes_does_at_any_scale(channels, times):
    q, k, v, sizes = tensors(channels)
    scale = times * channels**-0.5
    masked = F.scaled_dot_product_attention(
        q, k, v, attn_mask=sizes.log()[:, None, None], scale=scale
    )
    tensors_with_sizes = add_size_channels(q, k, v, sizes, scale)
    assert all(x.shape[-1] % ALIGNMENT == 0 for x in tensors_with_sizes)
    wide = F.scaled_dot_product_attention(*tensors_with_sizes)
    torch.testing.assert_close(wide[..., :channels], masked, atol=1e-5, rtol=1e-5)


def test_a_key_of_size_s_weighs_as_s_equal_keys():
    q, k, v, sizes = tensors(8)
    repeated_k, repeated_v = (x[:1].repeat_interleave(sizes[0], dim=2) for x in (k, v))
    every_token = F.scaled_dot_product_attention(q[:1], repeated_k, repeated_v)
    wide = add_size_channels(q[:1], k[:1], v[:1], sizes[:1], 8**-0.5)
    merged = F.scaled_dot_product_attention(*wide)[..., :8]
    torch.testing.assert_close(merged, every_token, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_attention_to_weighed_keys_is_that_with_a_mask_of_log_sizes(rows, key_heads):
    q, k, v = torch.randn(2, 4, 5, 8), *torch.randn(2, 2, key_heads, 7, 8)
    sizes = torch.randint(1, 9, (rows, 7))
    repeated = (x.repeat_interleave(4 // key_heads, dim=1) for x in (k, v))
    mask = sizes.log()[:, None, None]
    expected = F.scaled_dot_product_attention(q, *repeated, attn_mask=mask, scale=0.2)
    torch.testing.assert_close(attend_weighed(q, k, v, sizes, 0.2), expected)


@pytest.mark.parametrize("shape", [(5, 7), (2, 1, 7), (2, 1, 5, 7), (1, 1, 1, 7)])
@pytest.mark.parametrize("kind", [torch.float32, torch.bool])
def test_a_mask_that_is_there_anyway_takes_the_log_of_sizes(shape, kind):
    q, k, v, sizes = tensors(8)
    mask = torch.rand(shape) > 0.3
    mask[..., 0] = True
    scores = torch.zeros(shape).masked_fill(~mask, float("-inf"))
    given = mask if kind is torch.bool else scores
    wide = scores[None] if scores.ndim == 2 else scores
    wide = wide[:, None] if wide.ndim == 3 else wide
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=wide + sizes.log()[:, None, None])
    both = add_sizes_to_mask(given, sizes, q.dtype)
    ours = F.scaled_dot_product_attention(q, k, v, attn_mask=both)
    torch.testing.assert_close(ours, expected)


def test_a_mask_of_log_sizes_only_does_what_the_extra_channel_does():
    q, k, v, sizes = tensors(8)
    wide = F.scaled_dot_product_attention(*add_size_channels(q, k, v, sizes, 8**-0.5))[..., :8]
    mask = add_sizes_to_mask(None, sizes, q.dtype)
    masked = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(wide, masked, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("channels", [40, 64, 128])
def test_half_precision_is_as_near_to_float64_as_without_sizes(channels, dtype):
    q, k, v, sizes = tensors(channels)
    exact = F.scaled_dot_product_attention(
        *(x.double() for x in (q, k, v)), attn_mask=sizes.double().log()[:, None, None]
    )
    q, k, v = (x.to(dtype) for x in (q, k, v))
    out = F.scaled_dot_product_attention(*add_size_channels(q, k, v, sizes, channels**-0.5))
    torch.testing.assert_close(
        out[..., :channels].double(), exact, atol=4 * torch.finfo(dtype).eps, rtol=2e-2
    )


def test_the_log_of_sizes_is_computed_once_and_goes_with_them():
    sizes, others = torch.tensor([[1, 4]]), torch.tensor([[2, 2]])
    found = find_log_sizes(sizes)
    torch.testing.assert_close(found, sizes.log())
    assert find_log_sizes(sizes) is found
    torch.testing.assert_close(find_log_sizes(others), others.log())
    known = len(_logs)
    del sizes
    assert len(_logs) == known - 1
