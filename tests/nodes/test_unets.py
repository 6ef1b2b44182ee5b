"""Both nodes on ComfyUI's own UNets: which layers they reach, and what they leave as it was."""

import pytest
import torch
from support.pairs import cover_pairs
from token_merge.nodes.hooks.unet.layers import SelfAttentionLayer

IMAGE_UNETS = ["SD15", "SDXL", "SSD1B"]
FEW_UNETS = [
    "SDXL",
    *(pytest.param(name, marks=pytest.mark.thorough) for name in ("SD15", "SSD1B")),
]
PROMPT = 7


def self_attention(attention_log) -> set[tuple[int, int]]:
    return {lengths for lengths in attention_log.lengths if lengths[1] != PROMPT}


def test_merging_reaches_the_finest_self_attention_of_sd15(unet, tome, denoise, attention_log):
    denoise(attention_log.watch(tome(unet("SD15"))), size=(16, 16))
    assert self_attention(attention_log) == {(128, 128), (64, 64), (16, 16)}


@pytest.mark.parametrize("name", ["SDXL", "SSD1B"])
def test_the_defaults_act_on_sdxl_whose_finest_attention_is_downsampled_twice(
    name, unet, token_merge, token_downsample, denoise, attention_log
):
    denoise(attention_log.watch(token_merge(unet(name))), size=(16, 16))
    in_groups = -(-(64 - 12) // 4)
    assert self_attention(attention_log) == {(in_groups, 16), (16, 16)}
    attention_log.lengths.clear()
    denoise(attention_log.watch(token_downsample(unet(name), method="stratified")), size=(16, 16))
    assert self_attention(attention_log) == {(64, 16), (16, 16)}


@pytest.mark.parametrize("side", range(1, 40))
def test_the_grid_of_an_odd_side_is_what_the_strided_convolution_leaves(side):
    latent = torch.zeros(1, 4, side, 7)
    left = torch.nn.Conv2d(4, 4, 3, stride=2, padding=1)(latent).shape[2:]
    layer = SelfAttentionLayer("input", 1, 0, 2, 8, 8, "")
    grid = layer.measure_from(latent, (2,), latent.dtype).stream.grid
    assert (grid.height, grid.width) == left


@pytest.mark.parametrize(
    ("max_downsample", "expected"),
    [
        ("1", {(512, 512), (256, 256), (64, 64)}),
        ("2", {(512, 512), (128, 128), (64, 64)}),
        ("4", {(512, 512), (128, 128), (32, 32)}),
    ],
)
def test_max_downsample_reaches_coarser_layers(
    max_downsample, expected, unet, tome, denoise, attention_log
):
    model = tome(unet("SD15"), max_downsample=max_downsample)
    denoise(attention_log.watch(model), size=(32, 32))
    assert self_attention(attention_log) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("queries, downsampled keys and values", (128 // 4, 64)),
        ("queries, keys and values", (128, 128)),
        ("keys and values", (256, 128)),
        ("queries", (128, 256)),
    ],
)
def test_target_selects_the_sequences(target, expected, unet, tome, denoise, attention_log):
    denoise(attention_log.watch(tome(unet("SD15"), target=target)), size=(16, 16))
    assert expected in self_attention(attention_log)


def test_downsampling_has_a_factor_per_resolution(unet, token_downsample, denoise, attention_log):
    model = token_downsample(unet("SD15"), factor=4.0, factor_level_2=2.0, method="stratified")
    denoise(attention_log.watch(model), size=(16, 16))
    assert self_attention(attention_log) == {(256, 16), (64, 16), (16, 16)}


SIZES = cover_pairs(IMAGE_UNETS, [(16, 24), (17, 23), (31, 9), (4, 64)], [1, 3])


@pytest.mark.parametrize(
    ("name", "size", "batch"),
    [
        pytest.param(*case, marks=() if number % 4 == 0 else pytest.mark.thorough)
        for number, case in enumerate(SIZES)
    ],
    ids=str,
)
def test_any_size_and_batch_runs_and_stays_close_to_the_unpatched_model(
    name, size, batch, unet, token_merge, token_downsample, denoise
):
    unpatched = denoise(unet(name), size=size, batch=batch, steps=1)
    for node in (token_merge, token_downsample):
        reduced = denoise(node(unet(name)), size=size, batch=batch, steps=1)
        assert reduced.shape == unpatched.shape
        assert reduced.isfinite().all()
        assert 0 < (reduced - unpatched).norm() / unpatched.norm() < 0.3


@pytest.mark.parametrize("name", FEW_UNETS)
def test_settings_that_reduce_nothing_give_the_bits_of_the_unpatched_model(
    name, unet, token_merge, token_downsample, denoise
):
    unpatched = denoise(unet(name))
    assert torch.equal(denoise(token_merge(unet(name), ratio=0.0)), unpatched)
    assert torch.equal(denoise(token_downsample(unet(name), factor=1.0)), unpatched)


@pytest.mark.parametrize("name", FEW_UNETS)
def test_the_input_model_is_untouched(name, unet, token_merge, token_downsample, denoise):
    model = unet(name)
    options, wrappers = str(model.model_options), str(model.wrappers)
    unpatched = denoise(model)
    inputs = {"merge_mlp": True, "merge_cross_attention": True}
    reduced = denoise(token_merge(model, **inputs))
    denoise(token_downsample(model))
    assert not torch.equal(reduced, unpatched)
    assert (str(model.model_options), str(model.wrappers)) == (options, wrappers)
    assert torch.equal(denoise(model), unpatched)


def test_two_branches_with_other_strengths_do_not_leak_into_each_other(unet, token_merge, denoise):
    weak, strong = (token_merge(unet("SD15"), ratio=ratio) for ratio in (0.2, 0.7))
    alone = [denoise(weak), denoise(strong)]
    assert not torch.equal(*alone)
    assert torch.equal(denoise(weak), alone[0])
    assert torch.equal(denoise(strong), alone[1])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "dtype"), [("SD15", torch.float16), ("SDXL", torch.bfloat16)], ids=str
)
def test_half_precision_runs(name, dtype, unet, token_merge, token_downsample, denoise):
    model = unet(name, dtype)
    unpatched = denoise(model, steps=1)
    for node in (token_merge, token_downsample):
        reduced = denoise(node(model), steps=1)
        assert reduced.isfinite().all()
        assert (reduced - unpatched).norm() / unpatched.norm() < 0.3


@pytest.mark.thorough
@pytest.mark.parametrize("sampler", ["dpmpp_2m", "heun", "euler_ancestral", "dpm_2"])
def test_samplers_that_call_the_model_between_steps_stay_close_to_the_original(
    sampler, unet, token_merge, denoise
):
    unpatched = denoise(unet("SD15"), sampler=sampler, steps=3)
    merged = denoise(token_merge(unet("SD15")), sampler=sampler, steps=3)
    assert 0 < (merged - unpatched).norm() / unpatched.norm() < 0.3


@pytest.mark.parametrize("cfg", [1.0, 4.0], ids=["prompt alone", "with negative prompt"])
def test_only_self_attention_is_touched_unless_asked(
    cfg, unet, token_merge, denoise, attention_log
):
    denoise(attention_log.watch(token_merge(unet("SD15"))), cfg=cfg)
    cross = {lengths for lengths in attention_log.lengths if lengths[1] == PROMPT}
    assert cross == {(256, PROMPT), (64, PROMPT), (16, PROMPT)}


def test_cross_attention_is_merged_when_asked(unet, tome, denoise, attention_log):
    model = tome(unet("SD15"), merge_cross_attention=True)
    denoise(attention_log.watch(model))
    cross = {lengths for lengths in attention_log.lengths if lengths[1] == PROMPT}
    assert cross == {(128, PROMPT), (64, PROMPT), (16, PROMPT)}
