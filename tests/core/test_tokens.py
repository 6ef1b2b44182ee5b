import pytest
import torch
from token_merge.tome_core.tokens import join_heads, take_for_groups, take_tokens

IMAGES, HEADS, TOKENS, CHANNELS = 2, 3, 10, 4
LAYOUTS = {
    "heads apart": lambda: torch.randn(IMAGES, HEADS, TOKENS, CHANNELS),
    "heads together": lambda: torch.randn(IMAGES, TOKENS, HEADS, CHANNELS).transpose(1, 2),
    "queries, keys and values together": lambda: torch.randn(IMAGES, TOKENS, 3, HEADS, CHANNELS)[
        :, :, 1
    ].transpose(1, 2),
    "channels first": lambda: torch.randn(IMAGES, HEADS, CHANNELS, TOKENS).mT,
    "one head": lambda: torch.randn(IMAGES, 1, TOKENS, CHANNELS),
    "one for all heads": lambda: torch.randn(IMAGES, 1, TOKENS, CHANNELS).expand(-1, HEADS, -1, -1),
    "without heads": lambda: torch.randn(IMAGES, TOKENS, CHANNELS),
    "without heads, of a longer sequence": lambda: torch.randn(IMAGES, 15, CHANNELS)[:, 3:13],
}
TOGETHER = ["heads together", "queries, keys and values together"]


def is_view_when_joined(x):
    return join_heads(x).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("rows", [1, IMAGES])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tokens_are_those_of_the_numbers(layout, rows):
    x = LAYOUTS[layout]()
    numbers = torch.randint(TOKENS, (rows, 7))
    expected = torch.stack([x[image][..., numbers[image % rows], :] for image in range(IMAGES)])
    torch.testing.assert_close(take_tokens(x, numbers), expected, rtol=0, atol=0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_groups_of_an_image_follow_each_other(layout):
    x = LAYOUTS[layout]()
    numbers = torch.randint(TOKENS, (2, 5))
    images = range(IMAGES)
    expected = torch.stack([x[image][..., group, :] for image in images for group in numbers])
    torch.testing.assert_close(take_for_groups(x, numbers), expected, rtol=0, atol=0)


@pytest.mark.parametrize("layout", TOGETHER)
def test_heads_stay_together_in_memory(layout):
    """So that attention need not copy its output to join them."""
    x = LAYOUTS[layout]()
    for numbers in (torch.randint(TOKENS, (rows, 7)) for rows in (1, IMAGES)):
        assert is_view_when_joined(take_tokens(x, numbers))
        assert is_view_when_joined(take_for_groups(x, numbers))
    assert not is_view_when_joined(take_tokens(LAYOUTS["heads apart"](), numbers))
