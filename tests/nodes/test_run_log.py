"""What a user reads in the console: once per run, never nothing."""

import comfy.sample
import comfy.samplers
import pytest
import torch
from comfy.patcher_extension import WrappersMP
from support.unet_sampling import draw_prompts

COMPUTED_ELSEWHERE = (
    "Token Merge: no layer was reduced in this run: in its steps another node computed the model's "
    "blocks or attention, as TeaCache does, or none was computed."
)


def test_a_run_says_once_what_it_reduced(unet, token_merge, denoise, messages):
    denoise(token_merge(unet("SD15")), steps=3)
    assert messages() == [
        "Token Merge: 3 layers: 256 tokens, attention computes 204 queries and reads 64 keys."
    ]


def test_each_node_says_what_it_did(unet, tome, token_downsample, denoise, messages):
    denoise(token_downsample(tome(unet("SD15"), target="queries")))
    assert messages() == [
        "Token Merge: 3 layers: 256 tokens, attention computes 128 queries.",
        "Token Downsample: 3 layers: 256 tokens, attention reads 64 keys.",
    ]


def test_each_run_has_a_report_of_its_own(unet, token_merge, denoise, messages):
    model = token_merge(unet("SD15"))
    denoise(model, size=(16, 16))
    denoise(model, size=(8, 8))
    assert len(messages()) == 2
    assert ": 64 tokens" in messages()[1]


def test_a_model_without_attention_at_that_resolution_says_what_to_choose(
    unet, token_merge, denoise, messages
):
    denoise(token_merge(unet("SDXL"), max_downsample="1"))
    (message,) = messages()
    assert "no layer was reduced in this run" in message
    assert "downsampled 2x, so max_downsample has to be auto or at least 2" in message


def test_a_window_between_two_steps_says_so(unet, token_merge, denoise, messages):
    denoise(token_merge(unet("SD15"), start_percent=0.998, end_percent=0.999), steps=2)
    (message,) = messages()
    assert "none of its steps lies in 99.8% to 99.9% of the schedule" in message


def test_of_two_nodes_the_idle_one_says_why(unet, token_merge, denoise, messages):
    model = token_merge(unet("SD15"), end_percent=0.998)
    denoise(token_merge(model, start_percent=0.998, end_percent=0.999), steps=2)
    did, part, idle = messages()
    assert "3 layers: 256 tokens" in did
    assert part == "Token Merge: acts from 0% to 99.8% of the schedule."
    assert "none of its steps lies in 99.8% to 99.9% of the schedule" in idle


@pytest.mark.parametrize("name", ["SD15", "Flux"])
@pytest.mark.parametrize(("empty", "cfg"), [("both", 4.0), ("the positive one", 1.0)])
def test_a_run_without_conditioning_says_so(name, empty, cfg, unet, token_merge, messages):
    _, negative = draw_prompts(torch.Generator())
    given = ([], [] if empty == "both" else negative)
    sample_custom(token_merge(unet(name)), torch.tensor([14.0, 5.0, 0.0]), cfg, *given)
    assert messages() == [
        "Token Merge: no layer was reduced in this run: the positive conditioning is empty, so "
        "ComfyUI did not call the model."
    ]


@pytest.mark.parametrize("name", ["SD15", "Flux"])
def test_a_schedule_of_one_noise_level_says_so(name, unet, token_merge, messages):
    given = draw_prompts(torch.Generator())
    sample_custom(token_merge(unet(name)), torch.tensor([14.0]), 4.0, *given)
    assert messages() == [
        "Token Merge: no layer was reduced in this run: the schedule has a single noise level, so "
        "the run had no steps."
    ]


def sample_custom(model, sigmas, cfg, positive, negative):
    """As ComfyUI's SamplerCustom, without noise."""
    latent = torch.zeros(1, 4, 16, 16)
    sampler = comfy.samplers.sampler_object("euler")
    given = model, latent, cfg, sampler, sigmas, positive, negative, latent
    return comfy.sample.sample_custom(*given, disable_pbar=True, seed=0)


def test_attention_that_another_node_computes_is_said(flux, token_merge, denoise, messages):
    """Its wrapper comes after ours in each call, as those of several packs do."""

    def compute(attention, *args, **kwargs):
        return attention(*args, **kwargs)

    def replace_attention(executor, *args, **kwargs):
        given = (*args, *kwargs.values())
        options = next(each for each in given if isinstance(each, dict) and "wrappers" in each)
        options["optimized_attention_override"] = compute
        return executor(*args, **kwargs)

    model = token_merge(flux)
    model.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "another node", replace_attention)
    denoise(model)
    assert messages() == [COMPUTED_ELSEWHERE]


def test_blocks_that_another_node_runs_without_transformer_options_are_said(
    flux, token_merge, denoise, messages
):
    """As TeaCache 1.9.0 runs them: its own forward of the model hands none on."""

    def drop_options(block, args, kwargs):
        return args, {name: each for name, each in kwargs.items() if name != "transformer_options"}

    network = flux.model.diffusion_model
    hooks = [
        block.register_forward_pre_hook(drop_options, with_kwargs=True)
        for block in (*network.double_blocks, *network.single_blocks)
    ]
    try:
        alone, both = denoise(flux), denoise(token_merge(flux))
    finally:
        for hook in hooks:
            hook.remove()
    assert torch.equal(both, alone)
    assert messages() == [COMPUTED_ELSEWHERE]


def test_a_picture_of_one_row_steps_aside_with_the_reason(unet, token_merge, denoise, messages):
    denoise(token_merge(unet("SD15")), size=(1, 32))
    assert any("grid 1x32 is smaller than one 2x2 cell" in message for message in messages())
    assert any("no layer was reduced in this run" in message for message in messages())


def test_a_picture_of_one_row_is_merged_by_cells_that_fit(unet, tome, denoise, messages):
    denoise(tome(unet("SD15"), stride_y=1, stride_x=4), size=(1, 32))
    assert "3 layers: 32 tokens, attention computes 16 queries and reads 16 keys" in messages()[0]


def test_a_ratio_that_acts_as_less_is_said(unet, token_merge, denoise, messages):
    denoise(token_merge(unet("SD15"), ratio=0.9))
    assert any("ratio 0.9 acts as 0.75: each cell of 2 x 2 tokens" in each for each in messages())


@pytest.mark.parametrize("name", ["merge_mlp", "merge_cross_attention"])
def test_what_acts_on_unets_alone_is_said(name, flux, token_merge, denoise, messages):
    denoise(token_merge(flux, **{name: True}))
    assert any(f"{name} acts on UNets only, not on Flux" in each for each in messages())


def test_inputs_that_reduce_nothing_are_said_when_the_node_is_applied(unet, token_merge, messages):
    token_merge(unet("SD15"), ratio=0.0)
    assert messages() == [
        "Token Merge: Changes nothing: with these inputs no layer has fewer tokens."
    ]
