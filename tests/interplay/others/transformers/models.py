"""Models that read a second latent beside the one they denoise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import comfy.supported_models
import node_helpers
import torch
from support.small_models import SmallModel
from support.small_models.image_settings import FLUX as FLUX_SETTINGS
from support.small_models.images import pooled
from torch import Tensor

from ...kinds import FAMILIES, GRIDS, call_transformer
from ...other import Other
from ...sampler_call import Conditioning, SamplerCall

FILL, CANNY = (
    SmallModel(name, config, {**FLUX_SETTINGS, "in_channels": channels}, 16, (2, 2), 24, pooled)
    for name, config, channels in (
        ("Flux Fill", comfy.supported_models.FluxInpaint, 96),
        ("Flux Canny", comfy.supported_models.Flux, 32),
    )
)


def special(
    name: str,
    kind: str,
    family: SmallModel,
    change: Callable[[SamplerCall], SamplerCall],
    bare: SmallModel | None = None,
    grid: tuple[int, ...] = (),
    **fields: Any,
) -> Other:
    """A model of its own. bare: the same, without what ``change`` gives it."""
    call = partial(call_transformer, bare or family, grid or GRIDS[kind])
    return Other(name, (kind,), change=change, build=family.build, call=call, **fields)


def give(call: SamplerCall, values: dict[str, Any]) -> SamplerCall:
    """To both prompts, as ComfyUI's nodes do."""
    return change_prompts(call, lambda prompt: node_helpers.conditioning_set_values(prompt, values))


def change_prompts(
    call: SamplerCall, change: Callable[[Conditioning], Conditioning]
) -> SamplerCall:
    return replace(call, positive=change(call.positive), negative=change(call.negative))


def draw_latent(call: SamplerCall, *size: int, seed: int = 3) -> Tensor:
    """As the one that is sampled, or of another size. (1, C, *size)"""
    shape = (1, call.noise.shape[1], *(size or call.noise.shape[2:]))
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def give_picture(call: SamplerCall) -> SamplerCall:
    """A latent, and a mask of its upper half."""
    mask = torch.zeros(1, 1, *call.noise.shape[2:])
    mask[..., : mask.shape[-2] // 2, :] = 1.0
    return give(call, {"concat_latent_image": draw_latent(call), "concat_mask": mask})


OTHERS = (
    # The latent that it gets sways attention more than the empty one.
    special("an inpainting model (Flux Fill)", "Flux", FILL, give_picture, most_error=4.0),
    special("a control model (Flux Canny)", "Flux", CANNY, give_picture),
    special("image to video (Wan I2V)", "Wan", FAMILIES["Wan 2.1 I2V"], give_picture),
)
