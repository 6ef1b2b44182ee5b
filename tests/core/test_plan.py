import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from token_merge.tome_core.merging.plan import MergePlan, mean_by_index_add


@st.composite
def plans(draw):
    """A plan of random groups, none of them empty."""
    batch, slots, extra = draw(st.integers(1, 3)), draw(st.integers(1, 6)), draw(st.integers(0, 9))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    rows = []
    for _ in range(batch):
        row = torch.cat([torch.arange(slots), torch.randint(slots, (extra,), generator=generator)])
        rows.append(row[torch.randperm(row.numel(), generator=generator)])
    return make_plan(torch.stack(rows), slots)


def make_plan(assign: torch.Tensor, slots: int) -> MergePlan:
    """Each slot's last token stands for it."""
    number = torch.arange(assign.shape[1])
    chosen = [[number[row == slot].max() for slot in range(slots)] for row in assign]
    return MergePlan(assign, torch.tensor(chosen))


def tokens_for(plan: MergePlan, channels: int = 3) -> torch.Tensor:
    return torch.randn(*plan.assign.shape, channels)


@given(plans())
def test_merge_is_the_mean_of_each_slot(plan):
    x = tokens_for(plan)
    merged = plan.merge(x)
    for image in range(x.shape[0]):
        for slot in range(plan.keys_read):
            mean = x[image][plan.assign[image] == slot].mean(dim=0)
            torch.testing.assert_close(merged[image, slot], mean)


@given(plans())
def test_choose_takes_a_token_of_each_slot(plan):
    x = tokens_for(plan)
    chosen = plan.choose(x)
    for image, tokens in enumerate(plan.chosen):
        assert torch.equal(chosen[image], x[image, tokens])
        assert torch.equal(plan.assign[image, tokens], torch.arange(plan.keys_read))


@given(plans())
def test_unmerge_copies_each_slot_to_its_tokens(plan):
    y = torch.randn(plan.assign.shape[0], plan.keys_read, 2)
    unmerged = plan.unmerge(y)
    for image, row in enumerate(plan.assign):
        assert torch.equal(unmerged[image], y[image][row])


@given(plans())
def test_merging_what_was_unmerged_gives_it_back(plan):
    y = torch.randn(plan.assign.shape[0], plan.keys_read, 2)
    torch.testing.assert_close(plan.merge(plan.unmerge(y)), y)


@given(plans())
def test_sizes_count_the_tokens_of_each_slot(plan):
    for row, sizes in zip(plan.assign, plan.sizes, strict=True):
        assert torch.equal(sizes, torch.bincount(row, minlength=plan.keys_read))


@given(plans())
def test_one_image_of_a_batch_is_merged_as_it_is_alone(plan):
    x = tokens_for(plan)
    alone = make_plan(plan.assign[-1:], plan.keys_read)
    assert torch.equal(plan.merge(x)[-1:], alone.merge(x[-1:]))


@given(plans())
def test_the_way_without_embedding_bag_gives_the_same_mean(plan):
    x = tokens_for(plan, channels=1)
    first = torch.arange(plan.assign.shape[0])[:, None] * plan.keys_read
    mean = mean_by_index_add(x.flatten(0, 1), (plan.assign + first).flatten(), plan.sizes)
    torch.testing.assert_close(mean, plan.merge(x).flatten(0, 1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_dtype_keeps_its_own(dtype):
    plan = make_plan(torch.tensor([[0, 0, 0, 1]]), 2)
    x = torch.randn(1, 4, 8)
    merged = plan.merge(x.to(dtype))
    assert merged.dtype == dtype
    torch.testing.assert_close(merged.float(), plan.merge(x), atol=1e-2, rtol=1e-2)
    assert plan.unmerge(merged).dtype == dtype


def test_tokens_that_are_a_strided_view_are_merged_as_their_copy():
    plan = make_plan(torch.tensor([[0, 0, 1]]), 2)
    view = torch.randn(1, 5, 3).mT
    assert torch.equal(plan.merge(view), plan.merge(view.contiguous()))
