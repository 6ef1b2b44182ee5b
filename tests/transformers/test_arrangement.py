"""Sequences as plans see them, and back."""

from __future__ import annotations

import pytest
import torch
from comfy.ldm.modules.attention import attention_pytorch
from token_merge.nodes.hooks.attention.call import AttentionCall
from token_merge.nodes.hooks.transformer.arrangement import Interwoven, KeysAlone
from token_merge.tome_core import TokenGrid

WOVEN = Interwoven.weave(TokenGrid(height=2, width=3), 2, 12, torch.device("cpu"))
ARRANGEMENTS = [KeysAlone(), KeysAlone(before=4), KeysAlone(after=3), WOVEN]


@pytest.mark.parametrize("per_query", [True, False], ids=["mask per query", "one mask"])
@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=["as it is", "before", "after", "woven"])
def test_attention_of_the_arranged_call_is_that_of_the_call(arrangement, per_query):
    random = torch.Generator().manual_seed(0)
    queries = arrangement.count_queries(12)
    q, k, v = (torch.randn(1, 2, n, 8, generator=random) for n in (queries, 12, 12))
    mask = torch.randn(12 if per_query and queries == 12 else 1, 12, generator=random)
    call = AttentionCall.read(q, k, v, 2, mask, skip_reshape=True, skip_output_reshape=True)
    out = arrangement.restore(arrangement.arrange(call).run(attention_pytorch))
    torch.testing.assert_close(out, call.run(attention_pytorch))


def test_rows_of_the_picture_come_before_those_between_them():
    assert WOVEN.order.tolist() == [0, 1, 2, 5, 6, 7, 3, 4, 8, 9, 10, 11]
