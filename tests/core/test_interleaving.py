import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core import Deal, InterleavedPlan, TokenGrid, seeded_generator

COUNTS = st.integers(1, 40)
GROUPS = st.integers(1, 6)


@given(COUNTS, GROUPS, st.sampled_from([(), (3,)]))
def test_what_is_dealt_comes_back_in_its_place(queries, groups, heads):
    x = torch.randn(2, *heads, queries, 4)
    deal = Deal.draw(queries, groups, seeded_generator(0))
    assert deal.queries == queries
    split = deal.split(x)
    assert split.shape == (2 * groups, *heads, -(-queries // groups), 4)
    assert torch.equal(deal.join(split), x)


@given(COUNTS, GROUPS)
def test_a_query_gets_the_output_of_its_own_group(queries, groups):
    deal = Deal.draw(queries, groups, seeded_generator(0))
    group = torch.arange(groups).view(-1, 1, 1).expand(*deal.order.shape, 1)
    joined = deal.join(group)[0, :, 0]
    assert all(query in deal.order[of] for query, of in enumerate(joined.tolist()))


@given(COUNTS, GROUPS)
def test_rows_of_a_mask_go_with_their_queries(queries, groups):
    deal = Deal.draw(queries, groups, seeded_generator(0))
    mask = torch.randn(2, 3, queries, 5)
    found = deal.split_rows_of_mask(mask.repeat_interleave(groups, dim=0))
    assert torch.equal(found, deal.split(mask))


def test_a_mask_of_one_row_for_all_queries_stays():
    mask = torch.randn(4, 1, 1, 5)
    assert Deal.draw(8, 4, seeded_generator(0)).split_rows_of_mask(mask) is mask


def test_groups_share_no_key_and_read_all_of_them_together():
    grid = TokenGrid(6, 8)
    plan = InterleavedPlan.draw(grid, TokenGrid(3, 4), 4, seeded_generator(0))
    keys = plan.merge(torch.arange(48.0).view(1, 48, 1))
    assert keys.shape == (4, 12, 1)
    assert sorted(keys.flatten().tolist()) == list(range(48))


def test_images_of_a_batch_lie_group_by_group():
    plan = InterleavedPlan.draw(TokenGrid(4, 4), TokenGrid(2, 2), 2, seeded_generator(0))
    x = torch.randn(3, 16, 2)
    merged = plan.merge(x)
    for image in range(3):
        for group in range(2):
            assert torch.equal(merged[2 * image + group], x[image, plan.chosen[group]])


def test_a_layer_of_whole_attention_is_found_again_where_every_group_reads_all_keys():
    """With cells of one token each group has all keys: dealing alone changes nothing."""
    q, k, v = (torch.randn(2, 3, 12, 4, dtype=torch.float64) for _ in range(3))
    grid = TokenGrid(3, 4)
    deal = Deal.draw(12, 3, seeded_generator(0))
    plan = InterleavedPlan.draw(grid, grid, 3, seeded_generator(1))
    attention = torch.nn.functional.scaled_dot_product_attention
    rows = [plan.merge(x.flatten(0, 1)).unflatten(0, (2, 3, 3)) for x in (k, v)]  # (B, H, G, N, D)
    keys, values = (x.movedim(2, 1).flatten(0, 1) for x in rows)  # (B·G, H, N, D)
    out = deal.join(attention(deal.split(q), keys, values))
    torch.testing.assert_close(out, attention(q, k, v))
