"""Which cases a command measures: enough rounds for a ratio, few enough to end in time."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from unittest import mock

import torch
from token_merge.tome_core import payoff

from . import (
    measure_attention,
    measure_compile,
    measure_planning,
    measure_published,
    measure_steps,
    measure_transformer,
    measure_unet,
    published,
)
from .diffusion_transformers import FLUX_SHAPED, WAN_SHAPED, Clip
from .environment import Environment
from .measure_attention import AttentionLayer
from .measure_unet import Picture
from .session import Session

TIERS = {"core": 1, "main": 2, "all": 3}

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

STEPS_SIDES = {"sd15": (512, 768, 1024), "sdxl": (1024,)}

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

PEERS_LAYERS = (AttentionLayer("SD 1.5", 320, 8, 64, 300), AttentionLayer("SDXL", 640, 10, 64, 300))
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

ON_PHOTOGRAPHS = ("similarity", "correction")
"""Parts that need scikit-image for its photographs, and no GPU."""

SIDES = (32, 48, 64, 96, 128, 192, 256)
"""Of square token grids: 1024 to 65536 tokens."""


def measure(session: Session, options: argparse.Namespace) -> None:
    """The parts that the command names; where time may run out, the least needed are last.

    Tokens are reduced also where the nodes leave them whole because too little would be saved.
    """
    environment = Environment(torch.device(options.device), options.quick)
    if environment.narrow:
        # Calls this small spend their time waiting for one another's threads.
        torch.set_num_threads(1)
    steps: list[tuple[str, Callable[[], None]]] = [
        ("planning", partial(_planning, session, options, environment)),
        ("similarity", partial(_similarity, session, options)),
        ("correction", partial(_correction, session, options)),
        ("attention", partial(_attention, session, options, environment)),
        *(("unet", partial(_unet, session, options, environment, name)) for name in options.model),
        *(
            ("steps", partial(_steps, session, options, environment, name))
            for name in options.model
        ),
        ("transformer", partial(_transformer, session, options, environment)),
        ("compile", partial(_compile, session, options, environment)),
        ("published", partial(_published, session, options, environment)),
        ("peers", partial(_peers, session, options, environment)),
    ]
    if environment.on_gpu:
        order = ("unet", "transformer", "steps", "published", "planning", "compile", "attention")
        steps = [step for part in order for step in steps if step[0] == part]
    elif not environment.narrow and options.part == "all":
        steps = [step for step in steps if step[0] not in ("steps", "published", "peers")]
    if find_spec("skimage") is None:
        steps = [step for step in steps if step[0] not in ON_PHOTOGRAPHS]
    chosen = [step for part, step in steps if options.part in (part, "all")]
    if not chosen:
        raise RuntimeError(
            f"part is {options.part}, which is measured on a CPU, with scikit-image installed"
        )
    with mock.patch.dict(payoff.LEAST_FLOPS, clear=True):
        for step in chosen:
            step()


def _planning(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    sides, channels = ((8, 16, 24), 32) if environment.narrow else (SIDES, 320)
    rounds = options.rounds or 3
    measure_planning.measure(session, sides, environment, channels=channels, rounds=rounds)


def _similarity(session: Session, options: argparse.Namespace) -> None:
    # Here, since a GPU machine need not have scikit-image.
    from . import similarity

    session.results.similarity = [
        similarity.measure(side, ratio, noise)
        for side in ((32,) if options.quick else (64, 128))
        for ratio in ((0.5,) if options.quick else (0.25, 0.5))
        for noise in similarity.NOISE_LEVELS
    ]
    session.results.write(session.out)


def _correction(session: Session, options: argparse.Namespace) -> None:
    # Here, as in _similarity.
    from . import correction, similarity

    side = 16 if options.quick else correction.SIDE
    photographs = similarity.PHOTOGRAPHS[: 2 if options.quick else None]
    session.results.correction = [
        one
        for prompt_tokens in (correction.PROMPT_TOKENS, 0)
        for noise in (similarity.NOISE_LEVELS[::3] if options.quick else similarity.NOISE_LEVELS)
        for sharpness in correction.SHARPNESS
        for one in correction.measure(noise, sharpness, prompt_tokens, side, photographs)
    ]
    session.results.write(session.out)


def _attention(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    default = CUDA_LAYERS if environment.on_gpu else CPU_LAYERS
    layers = QUICK_LAYERS if environment.narrow else default
    layers = tuple(replace(layer, rounds=options.rounds or layer.rounds) for layer in layers)
    measure_attention.measure(session, layers, environment)


def _unet(
    session: Session, options: argparse.Namespace, environment: Environment, name: str
) -> None:
    default = CUDA_PICTURES if environment.on_gpu else CPU_PICTURES
    pictures = (QUICK_PICTURES if environment.narrow else default)[name]
    measure_unet.measure(session, name, _chosen(pictures, options), environment)


def _steps(
    session: Session, options: argparse.Namespace, environment: Environment, name: str
) -> None:
    sides = options.sizes or ((128,) if environment.narrow else STEPS_SIDES[name])
    rounds = options.rounds or (1 if environment.narrow else 5)
    measure_steps.measure(session, name, sides, environment, rounds)


def _transformer(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    default = CUDA_CLIPS if environment.on_gpu else CPU_CLIPS
    clips = [
        replace(
            clip,
            rounds=options.rounds or clip.rounds,
            attention_rounds=options.rounds or clip.attention_rounds,
        )
        for clip in (QUICK_CLIPS if environment.narrow else default)
        if clip.name in options.clips
    ]
    measure_transformer.measure(session, clips, environment)


def _compile(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    side = 64 if environment.narrow else 1024 if environment.on_gpu else 512
    rounds = options.rounds or (1 if environment.narrow else 5)
    compiler, cases = ("eager", slice(1, 2)) if environment.narrow else (None, slice(None))
    measure_compile.measure_unet(
        session, "sd15", side, environment, rounds=rounds, compiler=compiler, cases=cases
    )
    if not (environment.narrow or environment.on_gpu):
        return  # it would take half an hour on two cores
    for clip in QUICK_CLIPS[:1] if environment.narrow else CUDA_CLIPS:
        if environment.narrow or clip.name in COMPILED_CLIPS:
            measure_compile.measure_transformer(
                session, clip, environment, rounds=rounds, compiler=compiler, cases=cases
            )


def _published(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    sizes = options.sizes or ((64,) if environment.narrow else (512, 768, 1024))
    batches = (1, 2) if environment.narrow else published.BATCHES
    # Large batches last: where time runs out, every size has been measured.
    inputs = [(side, images) for images in batches for side in sizes]
    rounds = options.rounds or (1 if environment.narrow else 5)
    measure_published.measure(session, "sd15", inputs, environment, rounds=rounds)


def _peers(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    # Here: a GPU machine need not have scipy, and this part is for CPUs.
    from . import measure_peers

    default = PEERS_QUICK_LAYERS if environment.narrow else PEERS_LAYERS
    layers = [replace(layer, rounds=options.rounds or layer.rounds) for layer in default]
    sides = options.sizes or ((64,) if environment.narrow else (512,))
    pictures = [("sd15", side) for side in sides]
    measure_peers.measure(session, layers, pictures, environment)


def _chosen(default: Sequence[Picture], options: argparse.Namespace) -> list[Picture]:
    """The default pictures, with what the command says instead."""
    found: list[Picture] = []
    for side in options.sizes or [picture.side for picture in default]:
        picture = min(default, key=lambda one: abs(one.side - side))
        tier = TIERS[options.variants] if options.variants else picture.tier
        found.append(Picture(side, options.rounds or picture.rounds, tier, picture.warm_up))
    return found
