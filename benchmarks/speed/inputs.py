"""What each part measures unless the command says otherwise: pictures and clips."""

from __future__ import annotations

from dataclasses import replace

from .diffusion_transformers import FLUX_SHAPED, WAN_SHAPED, Clip
from .measure_unet import Picture

CPU_PICTURES = {
    # Larger calls take up to a minute on two cores: their first round is counted as well.
    "sd15": (Picture(512, 4), Picture(768, 3, warm_up=False), Picture(1024, 3, warm_up=False)),
    "sdxl": (Picture(1024, 2, warm_up=False),),
}
CUDA_PICTURES = {
    "sd15": (*(Picture(side, 10) for side in (512, 768, 1024)), Picture(1536, 5)),
    "sdxl": (Picture(1024, 10), Picture(2048, 3)),
}
QUICK_PICTURES = {"sd15": (Picture(128, 2), Picture(192, 1, False)), "sdxl": (Picture(128, 1),)}

GRAPH_PICTURES = {
    "sd15": tuple(Picture(side, 5) for side in (512, 768, 1024)),
    "sdxl": (Picture(1024, 5),),
}
GRAPH_CLIPS = ("flux-1024",)
"""On larger ones, a GPU does not wait for the processor anyway."""

LARGE = ("flux-2048", "wan-480p", "wan-720p")
"""Clips of which attention is most of the work."""

CPU_CLIPS = (
    # Larger calls take minutes on two cores.
    Clip("flux-1024", FLUX_SHAPED, 1024, 1024, 2, 3),
    Clip("flux-2048", FLUX_SHAPED, 2048, 2048, 1, 1, warm_up=False),
    Clip("wan-480p", WAN_SHAPED, 480, 832, 1, 1, frames=81, warm_up=False),
    Clip("wan-720p", WAN_SHAPED, 720, 1280, 1, 1, frames=81, warm_up=False, is_long=True),
)
CUDA_CLIPS = tuple(
    replace(clip, rounds=10, attention_rounds=20, warm_up=True, is_long=False)
    for clip in (CPU_CLIPS[0], Clip("flux-1536", FLUX_SHAPED, 1536, 1536, 1, 1), *CPU_CLIPS[1:])
)
QUICK_CLIPS = (
    Clip("flux-1024", FLUX_SHAPED, 128, 128, 1, 2, prompt_tokens=12),
    Clip("flux-2048", FLUX_SHAPED, 200, 152, 1, 1, prompt_tokens=12, warm_up=False),
    Clip("wan-480p", WAN_SHAPED, 96, 128, 1, 1, frames=9, prompt_tokens=12, warm_up=False),
    Clip("wan-720p", WAN_SHAPED, 112, 160, 1, 1, 13, 12, warm_up=False, is_long=True),
)
