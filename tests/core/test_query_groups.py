import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core import Draws, Stream, TokenGrid
from token_merge.tome_core.cells import list_cells
from token_merge.tome_core.downsampling.plan import ChoosingPlan
from token_merge.tome_core.downsampling.query_groups import NumberedGroups, cut_groups, draw_groups
from token_merge.tome_core.merging.destinations import Destinations
from token_merge.tome_core.merging.global_matching import absorb_most_similar

DRAWS = Draws((0,), torch.device("cpu"))
COUNTS = st.integers(1, 40)
GROUPS = st.integers(1, 6)
OTHERS = st.tuples(st.integers(0, 9), st.integers(0, 9))
"""So many queries are before and after the picture's."""


def plan_keys(grid: TokenGrid, smaller: TokenGrid, groups: int) -> ChoosingPlan:
    kept = list_cells(grid, smaller, groups, DRAWS.device).draw(DRAWS)
    return ChoosingPlan(Stream(grid), smaller, kept)


@given(COUNTS, OTHERS, GROUPS, st.sampled_from([(), (3,)]))
def test_what_is_split_comes_back_in_its_place(picture, others, groups, heads):
    queries = picture + sum(others)
    x = torch.randn(2, *heads, queries, 4)
    split_up = draw_groups(queries, min(groups, picture), DRAWS, *others)
    groups = split_up.groups
    split = split_up.split(x)
    each = -(-picture // groups) - (-sum(others) // groups)
    assert split.shape == (2 * groups, *heads, each, 4)
    assert torch.equal(split_up.join(split), x)


@given(COUNTS, OTHERS, GROUPS)
def test_a_query_gets_the_output_of_its_own_group(picture, others, groups):
    queries = picture + sum(others)
    split_up = draw_groups(queries, min(groups, picture), DRAWS, *others)
    group = torch.arange(split_up.groups).view(-1, 1, 1).expand(*split_up.order.shape, 1)
    joined = split_up.join(group)[0, :, 0]
    assert all(query in split_up.order[of] for query, of in enumerate(joined.tolist()))


@given(COUNTS, OTHERS, GROUPS)
def test_what_stands_around_a_picture_does_not_change_its_groups(picture, others, groups):
    """Else the errors of two prompts would differ, and guidance would multiply the difference."""
    groups = min(groups, picture)
    alone = draw_groups(picture, groups, DRAWS)
    around = draw_groups(picture + sum(others), groups, DRAWS, *others)
    places = around.places[0, others[0] :][:picture]
    assert torch.equal(places // around.order.shape[1], alone.places[0] // alone.order.shape[1])


@given(st.integers(8, 60), GROUPS, st.data())
def test_a_token_merged_elsewhere_moves_few_others_to_another_group(tokens, groups, data):
    """Rounding decides which of two equally similar tokens is merged."""
    merged = data.draw(st.integers(1, tokens - 2))
    groups = min(groups, tokens - merged)
    src = torch.randperm(tokens - 1) + 1
    absorbed, rounded = src[:merged], src[1 : merged + 1]  # one other
    found = [find_groups(tokens, each, groups) for each in (absorbed, rounded)]
    stay_in_both = torch.ones(tokens, dtype=torch.bool)
    stay_in_both[src[: merged + 1]] = False
    moved = (found[0] != found[1]) & stay_in_both
    assert moved.sum() < groups  # at most one at each border between two groups


def find_groups(tokens, absorbed, groups):
    """The group of each token where these are merged into the first one."""
    best = torch.zeros(1, tokens).index_fill_(1, absorbed, 1.0)
    nearest = torch.zeros(1, tokens, dtype=torch.int64)
    dst = Destinations(torch.zeros(1, 1, 1, dtype=torch.int64))
    plan = absorb_most_similar(best, nearest, dst, len(absorbed))
    split_up = cut_groups(plan.queries_kept, groups, DRAWS.device)
    of_group = torch.arange(groups).view(-1, 1, 1).expand(-1, split_up.group_size, 1)
    return split_up.join(of_group)[0, plan.assign[0], 0]


@given(GROUPS, st.integers(1, 9), st.sampled_from([(), (3,)]))
def test_groups_of_as_many_merged_queries_are_blocks_of_them(groups, group_size, heads):
    slots = groups * group_size
    blocks = cut_groups(slots, groups, DRAWS.device)
    numbers = torch.arange(slots)
    numbered = NumberedGroups(numbers.view(groups, -1), numbers)
    x, mask = torch.randn(2, *heads, slots, 4), torch.randn(2 * groups, 3, slots, 5)
    assert (blocks.groups, blocks.group_size) == (numbered.groups, numbered.group_size)
    assert torch.equal(blocks.split(x), numbered.split(x))
    assert torch.equal(blocks.join(blocks.split(x)), x)
    assert torch.equal(blocks.split_mask(mask), numbered.split_mask(mask))


def test_blocks_of_tokens_are_views():
    blocks, x = cut_groups(12, 4, DRAWS.device), torch.randn(2, 12, 5)
    split = blocks.split(x)
    assert split.data_ptr() == blocks.join(split).data_ptr() == x.data_ptr()


def test_merged_neighbours_are_seldom_in_one_group():
    absorbed = torch.arange(1, 512, 2)
    found = find_groups(1024, absorbed, 4)
    stays = torch.ones(1024, dtype=torch.bool).index_fill_(0, absorbed, False)
    left = found[stays]
    assert (left[1:] == left[:-1]).float().mean() < 0.4  # 0.25 by chance


@given(COUNTS, GROUPS)
def test_rows_of_a_mask_go_with_their_queries(queries, groups):
    split_up = draw_groups(queries, min(groups, queries), DRAWS)
    mask = torch.randn(2, 3, queries, 5)
    found = split_up.split_mask(mask.repeat_interleave(split_up.groups, dim=0))
    assert torch.equal(found, split_up.split(mask))


def test_a_mask_of_one_row_for_all_queries_stays():
    mask = torch.randn(4, 1, 1, 5)
    assert draw_groups(8, 4, DRAWS).split_mask(mask) is mask


def test_groups_share_no_key_and_read_all_of_them_together():
    plan = plan_keys(TokenGrid(6, 8), TokenGrid(3, 4), 4)
    keys = plan.merge(torch.arange(48.0).view(1, 48, 1))
    assert keys.shape == (4, 12, 1)
    assert sorted(keys.flatten().tolist()) == list(range(48))


def test_images_of_a_batch_lie_group_by_group():
    plan = plan_keys(TokenGrid(4, 4), TokenGrid(2, 2), 2)
    x = torch.randn(3, 16, 2)
    merged = plan.merge(x)
    for image in range(3):
        for group in range(2):
            assert torch.equal(merged[2 * image + group], x[image, plan.chosen[group]])


def test_attention_to_all_keys_is_found_again_where_every_group_reads_all_keys():
    """With cells of one token each group has all keys: splitting alone changes nothing."""
    q, k, v = (torch.randn(2, 3, 12, 4, dtype=torch.float64) for _ in range(3))
    grid = TokenGrid(3, 4)
    split_up = draw_groups(12, 3, DRAWS)
    plan = plan_keys(grid, grid, 3)
    attention = torch.nn.functional.scaled_dot_product_attention
    out = split_up.join(attention(split_up.split(q), plan.choose(k), plan.merge(v)))
    torch.testing.assert_close(out, attention(q, k, v))
