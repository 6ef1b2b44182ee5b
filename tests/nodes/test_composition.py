"""Our nodes with each other and with other nodes that patch attention."""

import logging

import pytest
import torch
from comfy_extras.nodes_hypertile import HyperTile
from comfy_extras.nodes_model_downscale import PatchModelAddDownscale
from comfy_extras.nodes_pag import PerturbedAttentionGuidance
from comfy_extras.nodes_sag import SelfAttentionGuidance
from comfy_extras.nodes_tomesd import TomePatchModel


def run(node, model, *args):
    """The MODEL that one of ComfyUI's own nodes returns, whichever style it is written in."""
    output = node.execute(model, *args)
    return output.args[0] if hasattr(output, "args") else output[0]


def test_merged_queries_and_downsampled_keys_compose(
    unet, tome, token_downsample, denoise, attention_log
):
    for model in (
        token_downsample(tome(unet("SD15"), target="queries"), method="stratified"),
        tome(token_downsample(unet("SD15"), method="stratified"), target="queries"),
    ):
        attention_log.lengths.clear()
        denoise(attention_log.watch(model))
        assert (128, 64) in attention_log.lengths


def test_merged_queries_and_interleaved_keys_compose(
    unet, tome, token_downsample, denoise, attention_log, caplog
):
    model = token_downsample(tome(unet("SD15"), target="queries"), method="interleaved")
    with caplog.at_level(logging.INFO, logger="token_merge"):
        picture = denoise(attention_log.watch(model))
    assert (128 // 4, 64) in attention_log.lengths, "the queries are not in four groups"
    assert "256 tokens, attention computes 128 queries." in caplog.text
    assert "256 tokens, attention reads 64 keys." in caplog.text
    alone = denoise(tome(unet("SD15"), target="queries"))
    assert 0 < (picture - alone).norm() / alone.norm() < 0.3


def test_nodes_that_take_turns_in_the_schedule_compose(
    unet, tome, token_downsample, denoise, attention_log
):
    model = token_downsample(unet("SD15"), method="stratified", end_percent=0.5)
    model = tome(model, start_percent=0.5)
    denoise(attention_log.watch(model), steps=4)
    finest = [lengths for lengths in attention_log.lengths if lengths in {(256, 64), (128, 128)}]
    assert len(finest) == 4 * 3
    assert finest == sorted(finest, reverse=True)


def test_nodes_on_other_resolutions_compose(unet, tome, token_downsample, denoise, attention_log):
    model = tome(unet("SD15"))
    model = token_downsample(model, factor=1.0, factor_level_2=2.0, method="stratified")
    denoise(attention_log.watch(model))
    assert {(128, 128), (64, 16)} <= set(attention_log.lengths)


@pytest.mark.parametrize("second", ["merge", "downsample"])
def test_two_nodes_on_the_same_tokens_are_refused_with_a_reason(
    second, unet, token_merge, token_downsample
):
    node = token_merge if second == "merge" else token_downsample
    model = token_merge(unet("SD15"))
    with pytest.raises(ValueError, match="keys and values from 0% to 100% of the schedule"):
        node(model)


def test_hypertile_before_or_after_makes_the_layer_step_aside(unet, token_merge, denoise, caplog):
    tile = (256, 2, 0, False)
    size = (64, 32)
    torch.manual_seed(0)
    tiled = denoise(run(HyperTile, unet("SD15"), *tile), size=size, steps=1)
    for model in (
        token_merge(run(HyperTile, unet("SD15"), *tile)),
        run(HyperTile, token_merge(unet("SD15")), *tile),
    ):
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="token_merge"):
            both = denoise(model, size=size, steps=1)
        assert both.isfinite().all()
        assert both.shape == tiled.shape
        assert "3 layers skipped: another node" in caplog.text


@pytest.mark.parametrize("order", ["before", "after"])
def test_comfyuis_own_tome_node_goes_first_and_ours_steps_aside(
    order, unet, token_merge, denoise, caplog
):
    own = run(TomePatchModel, unet("SD15"), 0.3)
    torch.manual_seed(0)
    alone = denoise(own)
    if order == "before":
        model = token_merge(own)
    else:
        model = run(TomePatchModel, token_merge(unet("SD15")), 0.3)
    torch.manual_seed(0)
    with caplog.at_level(logging.INFO, logger="token_merge"):
        both = denoise(model)
    assert torch.equal(both, alone)
    assert "3 layers skipped: another node changed its tokens from 256 to" in caplog.text


@pytest.mark.parametrize("guidance", [PerturbedAttentionGuidance, SelfAttentionGuidance])
@pytest.mark.parametrize("order", ["before", "after"])
def test_blocks_whose_attention_another_node_replaces_are_left_alone(
    guidance, order, unet, token_merge, denoise, caplog
):
    args = (3.0,) if guidance is PerturbedAttentionGuidance else (0.5, 2.0)
    model = unet("SD15")
    if order == "before":
        model = token_merge(run(guidance, model, *args), max_downsample="8")
    else:
        model = run(guidance, token_merge(model, max_downsample="8"), *args)
    with caplog.at_level(logging.INFO, logger="token_merge"):
        latent = denoise(model, size=(16, 16))
    assert latent.isfinite().all()
    assert "another node computes the block's self-attention (middle 0.0)" in caplog.text


def test_another_nodes_patch_sees_every_token(unet, token_merge, denoise):
    seen = {"input": set(), "output": set()}

    def before(n, context, value, extra_options):
        seen["input"].add((n.shape[1], context.shape[1]))
        return n, context, value

    def after(n, extra_options):
        seen["output"].add(n.shape[1])
        return n

    for first in ("ours", "theirs"):
        model = token_merge(unet("SD15")) if first == "ours" else unet("SD15").clone()
        model.set_model_attn1_patch(before)
        model.set_model_attn1_output_patch(after)
        denoise(model if first == "ours" else token_merge(model))
    assert seen == {"input": {(256, 256), (64, 64), (16, 16)}, "output": {256, 64, 16}}


def test_keys_that_another_node_lengthened_make_the_layer_step_aside(
    unet, token_merge, denoise, caplog
):
    def attend_to_more(n, context, value, extra_options):
        longer = torch.cat([context, context], dim=1)
        return n, longer, longer

    model = unet("SD15").clone()
    model.set_model_attn1_patch(attend_to_more)
    alone = denoise(model)
    with caplog.at_level(logging.INFO, logger="token_merge"):
        assert torch.equal(denoise(token_merge(model)), alone)
    assert "another node gave it 512 keys for 256 tokens" in caplog.text


def test_keys_and_values_that_another_node_changed_are_each_merged(
    unet, tome, denoise, attention_log
):
    def double_values(n, context, value, extra_options):
        return n, context, 2 * value

    model = unet("SD15").clone()
    model.set_model_attn1_patch(double_values)
    latent = denoise(attention_log.watch(tome(model)))
    assert (128, 128) in attention_log.lengths
    assert not torch.equal(latent, denoise(tome(unet("SD15"))))


def test_deep_shrink_halves_a_layers_picture_and_merging_follows(
    unet, tome, denoise, attention_log
):
    model = run(PatchModelAddDownscale, unet("SD15"), 1, 2.0, 0.0, 1.0, True, "bicubic", "bicubic")
    denoise(attention_log.watch(tome(model, max_downsample="2")), size=(32, 32))
    before, after_shrinking = attention_log.lengths[0], attention_log.lengths[2]
    assert (before, after_shrinking) == ((512, 512), (32, 32))


@pytest.mark.parametrize(("name", "method"), [("SD15", "interleaved"), ("Flux", "stratified")])
def test_token_merge_is_merged_queries_with_token_downsample(
    name, method, unet, token_merge, token_downsample, denoise
):
    merged = token_merge(unet(name), target="queries")
    both = token_downsample(merged, method=method, local_window="off")
    alone = token_merge(unet(name), local_window="off")
    assert torch.equal(denoise(alone), denoise(both))


@pytest.mark.parametrize("merge_mlp", [False, True])
def test_a_node_that_replaces_all_options_runs_the_original_model(
    merge_mlp, unet, token_merge, denoise, messages
):
    """As ComfyUI's SDPose Keypoint Extractor: the wrappers of the model are left, and no more."""

    def replace_options(model):
        clone = model.clone()
        patches = {"output_block_patch": [lambda h, skipped, options: (h, skipped)]}
        clone.model_options["transformer_options"] = {"patches": patches}
        return clone

    model = replace_options(token_merge(unet("SD15"), merge_mlp=merge_mlp))
    assert torch.equal(denoise(model), denoise(unet("SD15")))
    assert messages() == [
        "Token Merge and Token Downsample: another node replaced the options of the model, and "
        "with them the settings of these nodes: no layer was reduced in this run."
    ]
