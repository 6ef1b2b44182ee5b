"""Same result as ToMe's formulas (arXiv 2210.09461, sec. 3 and its code), for its partitions."""

import pytest
import torch
import torch.nn.functional as F
from token_merge.tome_core.matching import match_global
from token_merge.tome_core.partition import (
    Partition,
    kth_partition,
    random_partition,
    seeded_generator,
)
from token_merge.tome_core.plan import MergePlan


def merge_by_formula(x: torch.Tensor, a: list[int], b: list[int], r: int) -> torch.Tensor:
    """One image, (N, C): draw an edge from each token of A to its most similar token of B, keep
    the r most similar edges, average connected tokens. Returns every token's new value.
    """
    unit = F.normalize(x, dim=-1)
    edges = {i: max(b, key=lambda j, i=i: (unit[i] @ unit[j]).item()) for i in a}
    ranked = sorted(a, key=lambda i: -(unit[i] @ unit[edges[i]]).item())[:r]
    out = x.clone()
    for j in b:
        group = [j, *(i for i in ranked if edges[i] == j)]
        out[group] = x[group].mean(dim=0)
    return out


def check(x: torch.Tensor, partition: Partition, merged: int) -> None:
    plan = match_global(x, partition, merged)
    assert plan.slots == x.shape[1] - merged
    theirs = merge_by_formula(x[0], partition.src.tolist(), partition.dst.tolist(), merged)
    torch.testing.assert_close(plan.unmerge(plan.merge(x))[0], theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("tokens", "merged"), [(16, 8), (17, 5), (40, 1)])
def test_bipartite_soft_matching(tokens, merged):
    partition = kth_partition(tokens, 2)
    assert partition.dst.tolist() == list(range(1, tokens, 2))
    check(torch.randn(1, tokens, 12), partition, merged)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_kth_bipartite_matching_keeps_every_kth_token(k):
    tokens = 5 * k
    partition = kth_partition(tokens, k)
    assert partition.dst.tolist() == list(range(k - 1, tokens, k))
    check(torch.randn(1, tokens, 12), partition, tokens - tokens // k)


def test_tokens_beyond_the_last_group_are_kept_as_sources():
    partition = kth_partition(11, 4)
    assert partition.dst.tolist() == [3, 7]
    assert partition.src.numel() == 9


def test_fewer_tokens_than_a_group_are_refused():
    with pytest.raises(ValueError, match="3 tokens are fewer than one group of 4"):
        kth_partition(3, 4)


@pytest.mark.parametrize("merged", [1, 10, 19])
def test_random_bipartite_matching_merges_any_number(merged):
    partition = random_partition(20, merged, seeded_generator(merged))
    assert partition.src.numel() == merged
    check(torch.randn(1, 20, 12), partition, merged)


def test_weighted_merging_twice_is_the_mean_of_all_tokens():
    x = torch.randn(1, 8, 3)
    first = MergePlan.from_assignment(torch.tensor([[0, 0, 0, 1, 2, 2, 3, 3]]), 4)
    second = MergePlan.from_assignment(torch.tensor([[0, 0, 1, 1]]), 2)
    once, sizes = first.merge_weighted(x, torch.ones(1, 8))
    twice, sizes = second.merge_weighted(once, sizes)
    expected = torch.stack([x[0, :4].mean(dim=0), x[0, 4:].mean(dim=0)])
    torch.testing.assert_close(twice[0], expected)
    assert sizes.tolist() == [[4, 4]]
