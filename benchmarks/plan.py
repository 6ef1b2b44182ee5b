"""Which cases a command measures: enough rounds for a ratio, few enough to end in time."""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch

from . import (
    measure_attention,
    measure_compile,
    measure_planning,
    measure_published,
    measure_unet,
    published,
)
from .environment import Environment
from .measure_attention import Layer
from .measure_unet import Picture
from .session import Session

TIERS = {"core": 1, "main": 2, "all": 3}

CPU_PICTURES = {
    # A call at 1024 takes half a minute on two cores: its first round is counted as well.
    "sd15": (Picture(512, 5, 2), Picture(768, 4, 2), Picture(1024, 3, 1, warm_up=False)),
    "sdxl": (Picture(1024, 2, 1, warm_up=False),),
}
CUDA_PICTURES = {
    "sd15": tuple(Picture(side, 10, 2) for side in (512, 768, 1024, 1536, 2048)),
    "sdxl": tuple(Picture(side, 10, 2) for side in (1024, 1536, 2048)),
}
QUICK_PICTURES = {
    "sd15": (Picture(128, 2, 3), Picture(192, 1, 1, warm_up=False)),
    "sdxl": (Picture(128, 1, 1),),
}

CPU_LAYERS = (
    Layer("SD 1.5", 320, 8, 64, 5),
    Layer("SD 1.5", 320, 8, 96, 4),
    Layer("SD 1.5", 320, 8, 128, 3, tier=2),
    Layer("SDXL", 640, 10, 64, 3, tier=2),
)
CUDA_LAYERS = tuple(
    Layer(model, channels, heads, side, 20)
    for model, channels, heads in (("SD 1.5", 320, 8), ("SDXL", 640, 10))
    for side in (64, 96, 128, 192, 256)
)
QUICK_LAYERS = (Layer("SD 1.5", 32, 4, 16, 2), Layer("SDXL", 64, 8, 24, 1, tier=1))

SIDES = (32, 48, 64, 96, 128, 192, 256)
"""Of square token grids: 1024 to 65536 tokens."""


def measure(session: Session, options: argparse.Namespace) -> None:
    """Cheap parts first; what an interruption takes away is then the least."""
    environment = Environment(torch.device(options.device), options.quick)
    quick, on_gpu = environment.narrow, environment.on_gpu

    if quick:
        # Calls this small spend their time waiting for one another's threads.
        torch.set_num_threads(1)

    def wanted(part: str) -> bool:
        return options.part in (part, "all")

    def rounds(default: int) -> int:
        return options.rounds or default

    if wanted("planning"):
        sides, channels = ((8, 16, 24), 32) if quick else (SIDES, 320)
        measure_planning.measure(session, sides, environment, channels=channels, rounds=rounds(3))
    if wanted("similarity") and not on_gpu:
        from .similarity import NOISE_LEVELS
        from .similarity import measure as measure_similarity

        session.results.similarity = [
            measure_similarity(side, ratio, noise)
            for side in ((32,) if quick else (64, 128))
            for ratio in ((0.5,) if quick else (0.25, 0.5))
            for noise in NOISE_LEVELS
        ]
        session.results.write(session.out)
    if wanted("attention"):
        layers = QUICK_LAYERS if quick else CUDA_LAYERS if on_gpu else CPU_LAYERS
        layers = tuple(replace(layer, rounds=rounds(layer.rounds)) for layer in layers)
        measure_attention.measure(session, layers, environment)
    if wanted("unet"):
        for name in options.model:
            measure_unet.measure(session, name, _pictures(options, name), environment)
    if options.part == "published" or (options.part == "all" and (on_gpu or quick)):
        sizes = options.sizes or ((64,) if quick else (512, 768, 1024))
        batches = (1, 2) if quick else published.BATCHES
        # Large batches last: where time runs out, every size has been measured.
        inputs = [(side, images) for images in batches for side in sizes]
        measured = rounds(1 if quick else 5)
        measure_published.measure(session, "sd15", inputs, environment, rounds=measured)
    if wanted("compile"):
        side = 64 if quick else 1024 if on_gpu else 512
        compiler = "eager" if quick else None
        measured = rounds(1 if quick else 5)
        measure_compile.measure(
            session, "sd15", side, environment, rounds=measured, compiler=compiler
        )


def _pictures(options: argparse.Namespace, name: str) -> list[Picture]:
    """The default ones, with what the command says instead."""
    on_gpu = options.device == "cuda"
    default = (QUICK_PICTURES if options.quick else CUDA_PICTURES if on_gpu else CPU_PICTURES)[name]
    found: list[Picture] = []
    for side in options.sizes or [picture.side for picture in default]:
        picture = min(default, key=lambda one: abs(one.side - side))
        tier = TIERS[options.variants] if options.variants else picture.tier
        found.append(Picture(side, options.rounds or picture.rounds, tier, picture.warm_up))
    return found
