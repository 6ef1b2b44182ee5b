"""Both nodes beside other nodes that sit in attention."""

from __future__ import annotations

import logging
from functools import partial

import pytest
import torch
from comfy.patcher_extension import WrappersMP
from support.attention_record import OVERRIDE, AttentionRecord
from support.comfyui_version import needs_comfyui
from support.expected import pair_calls
from support.small_models import IMAGES, VIDEOS, SampleRequest, each

FAMILIES = {family.name: family for family in (*IMAGES, *VIDEOS)}
SEVERAL = (
    "Flux Kontext",
    "Qwen-Image",
    "OmniGen2",
    "SD3",
    "Wan with a reference first",
    "HiDream-I1",
    "Lens",
)
RUN = SampleRequest(steps=1)
NEEDS_PATCHES = needs_comfyui("0.18.2", "attention patches in transformers")


@pytest.fixture(params=each(FAMILIES[name] for name in SEVERAL))
def family(request):
    return request.param


@pytest.fixture(params=["merge", "downsample"])
def node(request, tome, token_downsample):
    """Without local windows: these do not call the attention function that a test watches."""
    windowless = partial(token_downsample, method="stratified", local_window="off")
    return tome if request.param == "merge" else windowless


class OtherNode:
    """Doubles what attention gives, and notes how many tokens it was asked for."""

    def __init__(self):
        self.lengths = []

    def put_on(self, model):
        """As the nodes do that replace attention by a faster one: nothing is kept."""
        clone = model.clone()
        clone.model_options["transformer_options"][OVERRIDE] = self.attend
        return clone

    def attend(self, attention, q, k, *args, **kwargs):
        tokens = 2 if kwargs.get("skip_reshape") else 1
        self.lengths.append((q.shape[tokens], k.shape[tokens]))
        return attention(q, k, *args, **kwargs) * 2


def put(order, other, ours, model):
    """A model with another node before or after ours."""
    return ours(other(model)) if order == "before" else other(ours(model))


def reduced_lengths(model, family):
    record = AttentionRecord()
    RUN.sample(record.watch(model), family)
    return [call.lengths for call in record.reached]


@pytest.mark.parametrize("order", ["before", "after"])
def test_another_attention_sees_the_reduced_tokens(family, node, order):
    other = OtherNode()
    model = family.build()
    picture = RUN.sample(put(order, other.put_on, node, model), family)
    assert other.lengths == reduced_lengths(node(family.build()), family)
    assert not torch.allclose(picture, RUN.sample(node(family.build()), family))


def test_another_attention_computes_blocks_that_are_not_reduced(token_downsample):
    """In the second step too, in which it is known that they are not."""
    family, run = FAMILIES["Flux"], SampleRequest(steps=2)
    model = OtherNode().put_on(family.build())
    picture = run.sample(token_downsample(model, factor=1, max_tokens=48), family)
    assert torch.equal(picture, run.sample(model, family))


def test_an_override_that_a_later_node_puts_around_ours_sees_every_token(family, node):
    calls = []

    def wrapper(executor, x, t, c_concat, c_crossattn, control, transformer_options, **kwargs):
        ours = transformer_options[OVERRIDE]

        def around(attention, q, *args, **kwargs):
            out = ours(attention, q, *args, **kwargs)
            calls.append((q, out))
            return out

        options = {**transformer_options, OVERRIDE: around}
        return executor(x, t, c_concat, c_crossattn, control, options, **kwargs)

    model = node(family.build())
    picture = RUN.sample(model, family)
    model = model.clone()
    model.add_wrapper_with_key(WrappersMP.APPLY_MODEL, "later node", wrapper)
    assert torch.equal(RUN.sample(model, family), picture)
    record = AttentionRecord()
    RUN.sample(record.watch(family.build()), family)
    assert len(calls) == len(record.asked)
    for (q, out), asked in zip(calls, record.asked, strict=True):
        assert q.numel() == asked.q.numel()
        assert out.numel() == asked.q.numel()


def test_the_options_of_a_call_stay_as_they_were(family, node):
    """Whoever called the model may use its dictionary again for another call."""
    changed = []

    def wrapper(executor, x, t, c_concat, c_crossattn, control, transformer_options, **kwargs):
        before = transformer_options.copy()
        out = executor(x, t, c_concat, c_crossattn, control, transformer_options, **kwargs)
        changed.append({name for name in transformer_options if name not in before})
        return out

    model = family.build().clone()
    model.add_wrapper_with_key(WrappersMP.APPLY_MODEL, "earlier node", wrapper)
    RUN.sample(node(model), family)
    assert changed == [set()]


def test_a_wrapper_may_call_the_model_again_and_leave_out_what_has_a_default(family, node):
    """ComfyUI's ``BaseModel._apply_model`` has defaults, and so have our wrappers."""

    def wrapper(executor, x, t, c_concat, c_crossattn, control, transformer_options, **kwargs):
        given = {"c_crossattn": c_crossattn, **kwargs}
        if "again" in transformer_options:
            return executor(x, t, transformer_options=transformer_options, **given)
        options = {**transformer_options, "again": True}
        return executor.class_obj.apply_model(x, t, transformer_options=options, **given)

    def add(model):
        clone = model.clone()
        clone.add_wrapper_with_key(WrappersMP.APPLY_MODEL, "other node", wrapper)
        return clone

    expected = RUN.sample(node(family.build()), family)
    assert torch.equal(RUN.sample(node(add(family.build())), family), expected)
    assert torch.equal(RUN.sample(add(node(family.build())), family), expected)


@NEEDS_PATCHES
@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("name", ["Flux", "Qwen-Image", "Krea 2"])
def test_attention_patches_see_every_token(name, node, order):
    family = FAMILIES[name]
    seen = []

    def inputs(q, k, v, pe=None, attn_mask=None, extra_options=None):
        seen.append((q.shape[2], k.shape[2], v.shape[2]))
        return {"q": q, "k": k, "v": v, "pe": pe, "attn_mask": attn_mask}

    def output(out, extra_options):
        seen.append((out.shape[1],))
        return out

    def patched(model):
        clone = model.clone()
        clone.set_model_attn1_patch(inputs)
        clone.set_model_attn1_output_patch(output)
        return clone

    unpatched = RUN.sample(patched(family.build()), family)
    whole = seen.copy()
    seen.clear()
    model = family.build()
    model = node(patched(model)) if order == "before" else patched(node(model))
    picture = RUN.sample(model, family)
    assert seen == whole
    assert whole
    assert torch.equal(picture, RUN.sample(node(family.build()), family))
    assert not torch.equal(picture, unpatched)


@NEEDS_PATCHES
def test_keys_that_a_patch_adds_stay_and_the_log_says_so(node, caplog):
    """As adapters do that let the picture attend to more than the model foresaw."""
    family = FAMILIES["Flux"]

    def more_keys(q, k, v, pe=None, attn_mask=None, extra_options=None):
        k, v = (torch.cat([x, x[:, :, :3]], dim=2) for x in (k, v))
        return {"k": k, "v": v, "pe": torch.cat([pe, pe[:, :, :3]], dim=2)}

    model = node(family.build()).clone()
    model.set_model_attn1_patch(more_keys)
    record = AttentionRecord()
    with caplog.at_level(logging.INFO, logger="token_merge"):
        RUN.sample(record.watch(model), family)
    for asked, reached in zip(record.asked, record.reached, strict=True):
        assert asked.lengths == (55, 58)
        assert torch.equal(reached.k[..., : asked.k.shape[3]], asked.k)
    assert "4 layers skipped: another node gave it 58 keys for 55 tokens" in caplog.text


def test_text_that_a_patch_adds_stays(node):
    """As ComfyUI's USOStyleReference does, which puts a picture's style before the prompt."""
    family = FAMILIES["Flux Kontext"]

    def more_text(inputs):
        for name in ("txt", "txt_ids"):
            inputs[name] = torch.cat([inputs[name][:, :3], inputs[name]], dim=1)
        return inputs

    model = node(family.build()).clone()
    model.set_model_post_input_patch(more_text)
    record = AttentionRecord()
    RUN.sample(record.watch(model), family)
    for asked, reached in zip(record.asked, record.reached, strict=True):
        channels = asked.k.shape[3]
        assert asked.lengths == (70, 70)
        assert reached.lengths[1] < 70
        assert torch.equal(reached.k[:, :, :10, :channels], asked.k[:, :, :10])
        assert torch.equal(reached.k[:, :, -12:, :channels], asked.k[:, :, -12:])


@needs_comfyui("0.18.2", "FluxKVCache")
def test_cached_references_are_not_reduced(node):
    """ComfyUI's FluxKVCache takes reference tokens out after a step and adds their keys alone."""
    from comfy_extras.nodes_flux import FluxKVCache

    family = FAMILIES["Flux 2 with references at timestep zero"]
    unpatched = family.build()
    for model in (FluxKVCache.execute(node(unpatched))[0], node(FluxKVCache.execute(unpatched)[0])):
        record = AttentionRecord()
        picture = SampleRequest(steps=2).sample(record.watch(model), family)
        assert torch.isfinite(picture).all()
        first, later = record.reached[:4], record.reached[4:]
        for asked, reached in zip(record.asked, first, strict=False):
            assert asked.lengths == (572, 572)
            assert reached.lengths[1] < 572
        for asked, reached in zip(record.asked[4:], later, strict=True):
            assert asked.lengths == (560, 572)
            assert torch.equal(reached.k[..., : asked.k.shape[3]], asked.k)


def test_merged_queries_and_downsampled_keys_compose(family, tome, token_downsample):
    for model in (
        token_downsample(tome(family.build(), target="queries"), method="stratified"),
        tome(token_downsample(family.build(), method="stratified"), target="queries"),
    ):
        record = AttentionRecord()
        RUN.sample(record.watch(model), family)
        for pair in pair_calls(record, family, RUN):
            if pair.kinds:
                full, picture = len(pair.kinds), pair.kinds.count("picture")
                left = (full - picture // 2, full - picture + picture // 4)
                assert pair.reached.lengths == left


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_block_whose_attention_is_of_an_unknown_node_is_left_to_it_and_the_log_says_so(
    family, token_downsample, order, caplog
):
    other, model = OtherNode(), family.build()
    model = put(order, other.put_on, partial(token_downsample, method="stratified"), model)
    with caplog.at_level(logging.WARNING, logger="token_merge"):
        picture = RUN.sample(model, family)
    assert torch.equal(picture, RUN.sample(other.put_on(family.build()), family))
    said = "another node computes its attention; use one of the two nodes, or set local_window"
    assert said in caplog.text


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_window_that_the_user_sets_is_computed_in_place_of_an_unknown_node(
    family, token_downsample, order, caplog
):
    other, ours = OtherNode(), partial(token_downsample, local_window="12")
    model = put(order, other.put_on, ours, family.build())
    with caplog.at_level(logging.INFO, logger="token_merge"):
        RUN.sample(model, family)
    assert "in local windows in place of another node" in caplog.text
    assert not {(queries, keys) for queries, keys in other.lengths if queries == keys > 100}


@NEEDS_PATCHES
@pytest.mark.parametrize("per_query", [False, True])
def test_a_mask_of_each_query_merges_none_and_the_log_says_so(per_query, token_merge, caplog):
    family = FAMILIES["Flux"]
    run = SampleRequest.with_tokens(family, 16, 16, steps=1)

    def hide(q, k, v, pe=None, attn_mask=None, extra_options=None):
        mask = torch.zeros(1, 1, q.shape[2] if per_query else 1, k.shape[2])
        mask[..., -1] = -1.0
        return {"attn_mask": mask}

    model = token_merge(family.build()).clone()
    model.set_model_attn1_patch(hide)
    with caplog.at_level(logging.INFO, logger="token_merge"):
        run.sample(model, family)
    assert ("a mask hides other keys from each query" in caplog.text) == per_query


def test_merged_queries_leave_no_local_window_and_the_log_says_so(
    family, token_merge, token_downsample, caplog
):
    merged = token_merge(family.build(), target="queries")
    with caplog.at_level(logging.WARNING, logger="token_merge"):
        picture = RUN.sample(token_downsample(merged), family)
    assert torch.equal(picture, RUN.sample(token_downsample(merged, local_window="off"), family))
    assert "local_window is left out: Token Merge reduces its queries" in caplog.text
