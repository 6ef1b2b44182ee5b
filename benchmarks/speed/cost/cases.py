"""What is counted: blocks of real models, and settings of the nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from comfy.ldm.modules.diffusionmodules.openaimodel import UNetModel
from comfy.model_patcher import ModelPatcher

from ... import ours
from ...settings import MERGE_ALL
from ..diffusion_transformers import FLUX_SHAPED, WAN_SHAPED, Clip
from ..windows import SIDE
from .block_calls import Patch
from .blocks import Block, UNetBlock
from .transformer_blocks import LARGE_WAN, FluxBlock, WanBlock


@dataclass(frozen=True)
class Setting:
    name: str
    patch: Patch


def _downsample(model: ModelPatcher) -> ModelPatcher:
    """At its defaults, with the local window of transformers also where it is too small to pay."""
    is_unet = isinstance(model.model.diffusion_model, UNetModel)
    inputs = {} if is_unet else {"local_window": str(SIDE)}
    return ours.apply("TokenDownsampleAdvanced", model, **inputs)


PLAIN = Setting("plain", ModelPatcher.clone)
SETTINGS = (
    Setting("Token Downsample ×2", _downsample),
    Setting(
        "the same, stratified",
        partial(ours.apply, "TokenDownsampleAdvanced", method="stratified", local_window="off"),
    ),
    Setting("Token Merge 0.2", partial(ours.apply, "TokenMergeAdvanced")),
    Setting("Token Merge 0.5", partial(ours.token_merge, setting=MERGE_ALL)),
)
"""At their defaults, but for two: "stratified" without a local window, where the default is
"interleaved" and on transformers a local window, and all that can be merged as ToMe for SD does."""
WITHOUT_WINDOWS = tuple(
    Setting(f"{name}, local_window off", partial(ours.apply, node, local_window="off"))
    for name, node in (
        ("Token Downsample ×2", "TokenDownsampleAdvanced"),
        ("Token Merge 0.2", "TokenMergeAdvanced"),
    )
)
"""What both do on transformers where another node sets the attention function."""


@dataclass(frozen=True)
class Shape:
    """block: of the model at the picture's size; of a UNet, the finest with self-attention."""

    name: str
    block: Block

    @property
    def is_unet(self) -> bool:
        return isinstance(self.block, UNetBlock)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Plain comes first."""
        return (PLAIN, *SETTINGS, *(() if self.is_unet else WITHOUT_WINDOWS))


@dataclass(frozen=True)
class Family:
    """make: the block on a square grid of this side. sides: in tokens, ascending."""

    name: str
    make: Callable[[int], Block]
    sides: tuple[int, ...]


def _sd15(side: int) -> Block:
    return UNetBlock(channels=320, heads=8, context=768, height=side, width=side)


def _sdxl(side: int) -> Block:
    return UNetBlock(channels=640, heads=10, context=2048, height=side, width=side)


def _flux(side: int, prompt_tokens: int = 512) -> Block:
    pixels = 16 * side
    return FluxBlock(Clip("flux", FLUX_SHAPED, pixels, pixels, 1, 1, prompt_tokens=prompt_tokens))


def _wan(width: int, height: int, frames: int = 81, sizes: dict[str, Any] | None = None) -> Block:
    return WanBlock(Clip("wan", WAN_SHAPED, 16 * height, 16 * width, 1, 1, frames=frames), sizes)


SHAPES = (
    Shape("SD 1.5 512²", _sd15(64)),
    Shape("SD 1.5 768²", _sd15(96)),
    Shape("SDXL 1024²", _sdxl(64)),
    Shape("Flux 1024²", _flux(64)),
    Shape("Flux 2048²", _flux(128)),
    Shape("Wan 1.3B 832×480", _wan(52, 30)),
    Shape("Wan 1.3B 1280×720", _wan(80, 45)),
    Shape("Wan 14B 832×480", _wan(52, 30, sizes=LARGE_WAN)),
    Shape("Wan 14B 1280×720", _wan(80, 45, sizes=LARGE_WAN)),
)
QUICK_SHAPES = (
    Shape("SD 1.5 128²", _sd15(16)),
    Shape("Flux 256²", _flux(16, prompt_tokens=24)),
    Shape("Wan 128²", _wan(8, 8, 5)),
)

FAMILIES = (
    Family("SD 1.5", _sd15, (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128)),
    Family("SDXL", _sdxl, (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128)),
    Family("Flux", _flux, (16, 24, 32, 40, 48, 56, 64, 80, 96, 128)),
    Family("Wan, 81 frames", lambda side: _wan(side, side), (8, 12, 16, 20, 24, 28, 32, 40, 48)),
)
QUICK_FAMILIES = (Family("SD 1.5", _sd15, (8, 16)),)
