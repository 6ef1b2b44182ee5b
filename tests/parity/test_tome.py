"""Same result as ToMe's formulas (arXiv 2210.09461, sec. 3 and its code), for its partitions."""

import pytest
import torch
import torch.nn.functional as F
from token_merge.tome_core import (
    Destinations,
    Draws,
    TokenGrid,
    choose_every_kth,
    choose_random,
    match_global,
)

CPU = torch.device("cpu")


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


def check(x: torch.Tensor, dst: Destinations, merged: int) -> None:
    tokens = x.shape[1]
    plan = match_global(x, TokenGrid(1, tokens), dst, merged)
    assert plan.keys_read == tokens - merged
    b = dst.flat.tolist()
    theirs = merge_by_formula(x[0], [n for n in range(tokens) if n not in b], b, merged)
    torch.testing.assert_close(plan.unmerge(plan.merge(x))[0], theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("tokens", "merged"), [(16, 8), (17, 5), (40, 1)])
def test_bipartite_soft_matching(tokens, merged):
    dst = choose_every_kth(tokens, 2, CPU)
    assert dst.flat.tolist() == list(range(1, tokens, 2))
    check(torch.randn(1, tokens, 12), dst, merged)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_kth_bipartite_matching_keeps_every_kth_token(k):
    tokens = 5 * k
    dst = choose_every_kth(tokens, k, CPU)
    assert dst.flat.tolist() == list(range(k - 1, tokens, k))
    check(torch.randn(1, tokens, 12), dst, tokens - tokens // k)


def test_tokens_beyond_the_last_group_are_sources():
    dst = choose_every_kth(11, 4, CPU)
    assert dst.flat.tolist() == [3, 7]
    check(torch.randn(1, 11, 12), dst, 9)


@pytest.mark.parametrize("merged", [1, 10, 19])
def test_random_bipartite_matching_merges_any_number(merged):
    dst = choose_random(20, 20 - merged, Draws((merged,), CPU))
    assert dst.count == 20 - merged
    check(torch.randn(1, 20, 12), dst, merged)
