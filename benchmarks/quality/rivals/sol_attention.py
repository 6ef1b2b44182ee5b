"""Sol-Attn (arXiv 2607.24027), as ComfyUI's node "Model Sparse Attention" computes it.

Written anew, since comfy-kitchen's form in PyTorch tells no pairs and leaves out the extra tokens.
Its kernel quantizes to INT8, which is left out here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 64
GROUP = 2
"""Blocks of queries that choose extra tokens together."""


@dataclass(frozen=True)
class Routing:
    """Which keys a block of queries reads exactly.

    tau: all blocks of keys whose score is so many standard deviations above the mean. share: in
    place of ``tau``, this share of the blocks, those with the highest scores. extra_tokens: of all
    other blocks, so many tokens with the highest scores.
    """

    tau: float = 1.3
    share: float | None = None
    extra_tokens: int = 256


def attend(
    q: Tensor, k: Tensor, v: Tensor, routing: Routing, always: Tensor
) -> tuple[Tensor, float]:
    """Softmax over exact keys and, for the others, one term that all queries of a block share.

    q, k, v: (S, L, D), S of rows and heads. always: (L,) bool, keys whose blocks all queries read.
    Returns (S, L, D), and the pairs that were read by one of S, as their mean. The few pairs of the
    mean queries, by which keys are chosen, count too.
    """
    length, scale = q.shape[1], q.shape[2] ** -0.5
    sizes = _split(torch.ones_like(q[:1, :, :1])).sum(2)  # (1, N, 1)
    mean_q, mean_k, mean_v = (_split(x).sum(2) / sizes for x in (q, k, v))  # (S, N, D)
    centre = mean_k.mean(1, keepdim=True)
    scores = mean_q @ (mean_k - centre).mT * scale  # (S, N, N)
    spread = (mean_q.square() @ (mean_k - centre).square().mean(1)[..., None]).sqrt() * scale
    sinks = _split(always[None, :, None].float()).amax((0, 2, 3)) > 0  # (N,)
    exact = choose_blocks(scores, spread, routing, sinks)
    tokens = exact.repeat_interleave(BLOCK, dim=2)[..., :length]  # (S, N, L)
    rest = scores.masked_fill(exact, -inf) + sizes.mT.log()
    if routing.extra_tokens:
        groups = mean_q.split(GROUP, dim=1)
        grouped = torch.cat([x.mean(1, keepdim=True).expand_as(x) for x in groups], dim=1)
        taken = torch.cat(
            [x.any(1, keepdim=True).expand_as(x) for x in exact.split(GROUP, dim=1)], dim=1
        )
        candidates = ~taken.repeat_interleave(BLOCK, dim=2)[..., :length]
        of_tokens = (grouped @ (k - centre).mT * scale).masked_fill(~candidates, -inf)
        least = of_tokens.topk(min(routing.extra_tokens, length), dim=2).values[..., -1:]
        extra = candidates & (of_tokens >= least)
        tokens = tokens | extra
        # Of these blocks the mean query reads each token; of the others it reads the mean key.
        rest = torch.cat([rest.masked_fill(~taken, -inf), of_tokens.masked_fill(extra, -inf)], 2)
        mean_v = torch.cat([mean_v, v], dim=1)
    level = rest.logsumexp(2)  # (S, N), -inf where nothing is left
    shared = (rest - level[..., None]).exp().nan_to_num(0.0) @ mean_v  # (S, N, D)
    out = torch.empty_like(v)
    for one, kept in enumerate(tokens):
        for block, keys in enumerate(kept):
            own = slice(block * BLOCK, (block + 1) * BLOCK)
            read = torch.cat([(k[one] - centre[one])[keys], k.new_zeros(1, k.shape[2])])
            values = torch.cat([v[one][keys], shared[one, block][None]])
            bias = torch.cat([k.new_zeros(len(read) - 1), level[one, block][None]])[None]
            out[one, own] = F.scaled_dot_product_attention(
                q[None, one, own], read[None], values[None], attn_mask=bias
            )[0]
    exact_pairs = tokens.sum(2).float().mean(0) @ sizes[0, :, 0]
    blocks = len(sinks)
    choosing = blocks**2 + (blocks * length / GROUP if routing.extra_tokens else 0)
    return out, float(exact_pairs) + choosing


def choose_blocks(scores: Tensor, spread: Tensor, routing: Routing, sinks: Tensor) -> Tensor:
    """(S, N, N) bool, the blocks of keys that each block of queries reads exactly.

    Its own block, the two beside it and ``sinks`` (N,) are always among them.
    spread: (S, N, 1), the standard deviation of the scores.
    """
    blocks = torch.arange(len(sinks))
    if routing.share is None:
        exact = scores > routing.tau * spread
    else:
        ranked = scores.masked_fill(sinks, -inf)
        count = max(1, round(routing.share * int((~sinks).sum())))
        exact = ranked >= ranked.topk(count, dim=2).values[..., -1:]
    return exact | sinks | ((blocks[:, None] - blocks).abs() <= 1)


def _split(x: Tensor) -> Tensor:
    """(S, L, D) -> (S, N, BLOCK, D), zeros behind the last token."""
    return F.pad(x, (0, 0, 0, -x.shape[1] % BLOCK)).unflatten(1, (-1, BLOCK))
