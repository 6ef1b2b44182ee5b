"""What the video models of the Wan family are given beside the prompt."""

from __future__ import annotations

from dataclasses import replace

import comfy.supported_models
import node_helpers
import torch
from comfy.clip_vision import Output
from comfy_extras.nodes_edit_model import ReferenceLatent
from support.small_models import SmallModel
from support.small_models.small_model import no_extras
from support.small_models.video_settings import WAN as WAN_SETTINGS
from support.small_models.videos import FLAT

from ...kinds import FAMILIES
from ...other import Other, run_node
from ...sampler_call import SamplerCall
from .models import change_prompts, draw_latent, give, special

SEEN = 5
"""CLIP's vision makes so many tokens of a frame here."""
FIRST_AND_LAST = SmallModel(
    "Wan FLF2V",
    comfy.supported_models.WAN21_I2V,
    {**WAN_SETTINGS, "model_type": "i2v", "in_dim": 36, "flf_pos_embed_token_number": 2 * SEEN},
    16,
    FLAT,
    24,
)
VACE, FUN, PHANTOM, BERNINI = (
    FAMILIES[f"Wan {name}"]
    for name in ("VACE", "with a reference first", "with frames behind", "with references last")
)


def give_first_and_last(call: SamplerCall) -> SamplerCall:
    """As WanFirstLastFrameToVideo does with both frames."""
    seen = Output()
    generator = torch.Generator().manual_seed(6)
    seen.penultimate_hidden_states = torch.randn(1, 2 * SEEN, 1280, generator=generator)
    mask = torch.ones(1, 4, *call.noise.shape[2:])
    mask[:, :, 0] = mask[:, :, -1] = 0.0
    frames = {"concat_latent_image": draw_latent(call), "concat_mask": mask}
    return give(call, {**frames, "clip_vision_output": seen})


def give_control_video(call: SamplerCall) -> SamplerCall:
    """As WanVaceToVideo does: what is to stay and what is to change, and a mask of the latter."""
    frames = torch.cat([draw_latent(call, seed=seed) for seed in (1, 2)], dim=1)
    mask = torch.ones(1, 64, *call.noise.shape[2:])
    return give(call, {"vace_frames": [frames], "vace_mask": [mask], "vace_strength": [0.8]})


def give_reference(call: SamplerCall) -> SamplerCall:
    picture = {"samples": draw_latent(call, 1, *call.noise.shape[-2:])}
    return change_prompts(call, lambda prompt: run_node(ReferenceLatent, prompt, picture))


def give_subjects(call: SamplerCall) -> SamplerCall:
    """As WanPhantomSubjectToVideo does: the negative prompt gets empty frames."""
    subjects = draw_latent(call, 2, *call.noise.shape[-2:])
    positive, negative = (
        node_helpers.conditioning_set_values(prompt, {"time_dim_concat": frames})
        for prompt, frames in (
            (call.positive, subjects),
            (call.negative, torch.zeros_like(subjects)),
        )
    )
    return replace(call, positive=positive, negative=negative)


def give_context(call: SamplerCall) -> SamplerCall:
    """A short video and a picture of another size."""
    latents = [draw_latent(call, 2, 12, 12), draw_latent(call, 1, 8, 16)]
    return give(call, {"context_latents": latents})


OTHERS: tuple[Other, ...] = (
    special("first and last frame (Wan FLF2V)", "Wan", FIRST_AND_LAST, give_first_and_last),
    special(
        "control video (Wan VACE)",
        "Wan",
        VACE,
        give_control_video,
        replace(VACE, extras=no_extras),
    ),
    *(
        special(name, "Wan", family, change, replace(family, references=None))
        for name, family, change in (
            ("reference picture (Wan Fun Control)", FUN, give_reference),
            ("subjects (Phantom)", PHANTOM, give_subjects),
            ("in-context references (Bernini)", BERNINI, give_context),
        )
    ),
)
