"""What each part measures unless the command says otherwise: pictures, layers, clips."""

from __future__ import annotations

from dataclasses import replace

from .diffusion_transformers import FLUX_SHAPED, WAN_SHAPED, Clip
from .measure_attention import AttentionLayer
from .measure_unet import Picture

CPU_PICTURES = {
    # Larger calls take up to a minute on two cores: their first round is counted as well.
    "sd15": (
        Picture(512, 4, 2),
        Picture(768, 3, 2, warm_up=False),
        Picture(1024, 3, 1, warm_up=False),
    ),
    "sdxl": (Picture(1024, 2, 1, warm_up=False),),
}
CUDA_PICTURES = {
    "sd15": (
        *(Picture(side, 10, 2) for side in (512, 768, 1024)),
        Picture(1536, 5, 2),
        Picture(2048, 3, 1),
    ),
    "sdxl": (Picture(1024, 10, 2), Picture(1536, 5, 1), Picture(2048, 3, 1)),
}
QUICK_PICTURES = {
    "sd15": (Picture(128, 2, 3), Picture(192, 1, 1, warm_up=False)),
    "sdxl": (Picture(128, 1, 1),),
}

GRAPH_PICTURES = {
    "sd15": tuple(Picture(side, 5, 1) for side in (512, 768, 1024, 1536)),
    "sdxl": (Picture(1024, 5, 1), Picture(2048, 5, 1)),
}
GRAPH_CLIPS = ("flux-1024", "flux-1536")
"""Of larger ones, a GPU does not wait for the processor anyway."""

STEPS_PICTURES = {
    "sd15": tuple(Picture(side, 5, 1) for side in (512, 768, 1024)),
    "sdxl": (Picture(1024, 5, 1),),
}
QUICK_CORE_PICTURES = {name: (Picture(128, 1, 1),) for name in ("sd15", "sdxl")}

CPU_LAYERS = (
    AttentionLayer("SD 1.5", 320, 8, 64, 5),
    AttentionLayer("SD 1.5", 320, 8, 96, 4, tier=2),
    AttentionLayer("SD 1.5", 320, 8, 128, 3, tier=2),
    AttentionLayer("SDXL", 640, 10, 64, 3, tier=2),
)
CUDA_LAYERS = tuple(
    AttentionLayer(model, channels, heads, side, 20)
    for model, channels, heads in (("SD 1.5", 320, 8), ("SDXL", 640, 10))
    for side in (64, 96, 128, 192, 256)
)
QUICK_LAYERS = (
    AttentionLayer("SD 1.5", 32, 4, 16, 2),
    AttentionLayer("SDXL", 64, 8, 24, 1, tier=1),
)

PEERS_LAYERS = (
    AttentionLayer("SD 1.5", 320, 8, 64, 1000),
    AttentionLayer("SDXL", 640, 10, 64, 1000),
)
PEERS_QUICK_LAYERS = (AttentionLayer("SD 1.5", 32, 4, 16, 3),)

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

COMPILED_CLIPS = {"flux-2048", "wan-480p"}

SIDES = (32, 48, 64, 96, 128, 192, 256)
"""Of square token grids: 1024 to 65536 tokens."""
