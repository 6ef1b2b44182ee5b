"""Videos that are drawn by more than a prompt: what is not reduced, and why."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

import comfy.sample
import comfy.samplers
import pytest
import torch
from comfy_extras.nodes_lt import LTXVAddGuide
from support.attention_record import AttentionRecord
from support.comfyui_version import (
    EARLIER_SOUND,
    leave_out_before,
    needs_comfyui,
    needs_comfyui_before,
)
from support.small_models import UNGUIDED_VIDEOS, UNREACHED, VIDEOS, SampleRequest
from support.token_places import find_places

FAMILIES = {family.name: family for family in (*VIDEOS, *UNREACHED)}
RUN = SampleRequest(steps=1)
VIDEO = 3 * 6 * 8


@pytest.fixture(params=["merge", "downsample"])
def node(request, token_merge, token_downsample):
    patch = token_merge if request.param == "merge" else token_downsample
    return partial(patch, local_window="off")


@pytest.mark.thorough
@pytest.mark.parametrize("family", UNGUIDED_VIDEOS, ids=str)
def test_with_a_prompt_alone_the_sequence_is_the_video(family):
    assert find_places(family, RUN).segments == [("picture", VIDEO)]


@pytest.mark.parametrize("name", ["LTX-2", "LTX-2 with guides"])
def test_sound_and_what_sound_and_video_read_of_each_other_are_not_reduced(name, node):
    if name == "LTX-2":
        leave_out_before(*EARLIER_SOUND)
    family = FAMILIES[name]
    sound = family.sound[1] + (3 if name == "LTX-2" else 0)
    record = AttentionRecord()
    RUN.sample(record.watch(node(family.build())), family)
    calls = list(zip(record.asked, record.reached, strict=True))
    of_sound = [pair for pair in calls if sound in pair[0].lengths]
    assert len(of_sound) == 4 * 3  # itself, the prompt, to the video and from it, in three blocks
    for asked, reached in of_sound:
        assert torch.equal(reached.q, asked.q)
        assert torch.equal(reached.k, asked.k)
    assert sum(reached.lengths[1] < asked.lengths[1] for asked, reached in calls) == 3


@needs_comfyui(*EARLIER_SOUND)
def test_a_video_with_as_many_tokens_as_its_sound_is_left_alone(node, caplog):
    family = replace(FAMILIES["LTX-2"], sound=(8, VIDEO - 3, 16))
    said = f"its {VIDEO} tokens are as many as those of the prompt or the sound"
    assert is_left_alone(family, node, caplog, said)


def test_a_frame_with_as_many_tokens_as_its_voice_is_left_alone(node, caplog):
    family = replace(FAMILIES["Wan HuMo"], references=None)
    run = SampleRequest.with_tokens(replace(family, grid=(1, 4, 4)), 4, 4, steps=1)
    said = "its 16 tokens are as many as those of the prompt"
    assert is_left_alone(family, node, caplog, said, run)


def test_a_frame_with_as_many_tokens_as_clip_has_is_left_alone(node, caplog):
    family = FAMILIES["Wan 2.1 I2V"]
    run = SampleRequest(size=(1, 2, 514), steps=1)
    said = "its 257 tokens are as many as those of the prompt"
    assert is_left_alone(family, node, caplog, said, run)


@needs_comfyui_before("0.33.0", "guides that fill no frame")
def test_guides_that_fill_no_frame_are_left_alone(node, caplog):
    said = "its 7 guide tokens are not the last frames of its latent"
    assert is_left_alone(with_guide(keyframe_idxs=torch.zeros(1, 3, 7, 2)), node, caplog, said)


def test_a_latent_of_guides_alone_is_left_alone(node, caplog):
    said = f"its {VIDEO + 48} guide tokens are not the last frames of its latent"
    places = torch.zeros(1, 3, VIDEO + 48, 2)
    assert is_left_alone(with_guide(keyframe_idxs=places), node, caplog, said)


@needs_comfyui("0.24.1", "guides of a smaller size in LTX-Video")
def test_guides_of_a_smaller_size_are_left_alone(node, caplog):
    """ComfyUI leaves out the tokens between theirs; the mask alone tells which these are."""
    _, guide = LTXVAddGuide.dilate_latent(torch.zeros(1, 1, 1, 3, 4), 2)
    mask = torch.cat([torch.ones(1, 1, 3, 6, 8), guide], dim=2)
    said = (
        f"its {VIDEO + 12} tokens do not fit the 3x6x8 tokens of the picture and the 48 behind it"
    )
    assert is_left_alone(with_guide(concat_mask=mask), node, caplog, said)


@needs_comfyui("0.24.1", "an attention of their own for guides in LTX-Video")
def test_guides_of_another_strength_are_left_alone(node, caplog):
    """ComfyUI computes attention for the video and for the guides apart."""
    entry = {"pre_filter_count": 48, "strength": 0.5, "latent_shape": [1, 6, 8]}
    said = "its attention is computed for some of the tokens at a time"
    family = with_guide(guide_attention_entries=[entry])
    assert is_left_alone(family, node, caplog, said)


def with_guide(**conditioning):
    family = FAMILIES["LTXV with guides"]
    return replace(family, extras=lambda *given: {**family.extras(*given), **conditioning})


def is_left_alone(family, node, caplog, said, run=RUN):
    with caplog.at_level(logging.INFO, logger="token_merge"):
        picture = run.sample(node(family.build()), family)
    assert said in caplog.text
    return torch.equal(picture, run.sample(family.build(), family))


@needs_comfyui("0.24.1", "Wan, autoregressive")
def test_what_the_autoregressive_sampler_asks_of_attention_cannot_be_reached(monkeypatch):
    """Else the reason for which this model is skipped is gone."""
    import comfy.ldm.wan.ar_model as autoregressive

    family = FAMILIES["Wan, autoregressive"]
    asked = []
    attention = autoregressive.optimized_attention

    def note(*args, **options):
        asked.append(options.get("transformer_options"))
        return attention(*args, **options)

    monkeypatch.setattr(autoregressive, "optimized_attention", note)
    record = AttentionRecord()
    latent, prompt = RUN.latent(family), RUN.prompt(family, 7, seed=1)
    comfy.sample.sample_custom(
        record.watch(family.build()),
        latent,
        1.0,
        comfy.samplers.ksampler("ar_video"),
        torch.tensor([1.0, 0.0]),
        prompt,
        prompt,
        torch.zeros_like(latent),
    )
    # Three blocks, three frames: once to draw each, and once to remember it.
    assert len(asked) >= 3 * 3 * 2
    assert not any(asked)
    assert not record.asked


@needs_comfyui("0.33.0", "Wan Animate 2")
def test_each_frame_of_wan_animate_2_reads_a_frame_of_its_own():
    """Else the reason for which this model is skipped is gone."""
    family = FAMILIES["Wan Animate 2"]
    record = AttentionRecord()
    RUN.sample(record.watch(family.build()), family)
    frame = VIDEO // 3
    lengths = [call.lengths for call in record.asked if call.lengths[1] >= VIDEO]
    blocks = len(family.build().model.diffusion_model.blocks)
    assert lengths == blocks * [(frame, VIDEO), *2 * [(frame, VIDEO + frame)]]
