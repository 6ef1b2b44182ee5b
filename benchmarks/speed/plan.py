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
    inputs,
    measure_attention,
    measure_compile,
    measure_graph,
    measure_planning,
    measure_published,
    measure_steps,
    measure_transformer,
    measure_unet,
    measure_whole,
    published,
)
from .environment import Environment
from .measure_unet import Picture
from .session import Session

TIERS = {"core": 1, "main": 2, "all": 3}

ORDER_ON_GPU = (
    "unet",
    "transformer",
    "graph",
    "steps",
    "published",
    "planning",
    "compile",
    "attention",
    "whole",
)

ON_PHOTOGRAPHS = ("similarity", "correction")
"""Parts that need scikit-image for its photographs, and no GPU."""

MEASURED_ON = {
    "graph": "a GPU",
    "peers": "a CPU",
    **dict.fromkeys(ON_PHOTOGRAPHS, "a CPU, with scikit-image installed"),
}
"""The parts that not every machine can measure."""


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
        ("unet", partial(_unet, session, options, environment)),
        ("steps", partial(_steps, session, options, environment)),
        ("graph", partial(_graph, session, options, environment)),
        ("transformer", partial(_transformer, session, options, environment)),
        ("compile", partial(_compile, session, options, environment)),
        ("published", partial(_published, session, options, environment)),
        ("whole", partial(_whole, session, options, environment)),
        ("peers", partial(_peers, session, options, environment)),
    ]
    if environment.on_gpu:
        steps = [step for part in ORDER_ON_GPU for step in steps if step[0] == part]
    elif not environment.narrow:
        left_out = ("steps", "published", "peers") if options.part == "all" else ()
        steps = [step for step in steps if step[0] not in ("graph", *left_out)]
    if find_spec("skimage") is None:
        steps = [step for step in steps if step[0] not in ON_PHOTOGRAPHS]
    chosen = [step for part, step in steps if options.part in (part, "all")]
    if not chosen:
        place = MEASURED_ON[options.part]
        raise RuntimeError(f"part is {options.part}, which is measured on {place}")
    with mock.patch.dict(payoff.LEAST_FLOPS, clear=True):
        for step in chosen:
            step()


def _planning(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    sides, channels = ((8, 16, 24), 32) if environment.narrow else (inputs.SIDES, 320)
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
    default = inputs.CUDA_LAYERS if environment.on_gpu else inputs.CPU_LAYERS
    layers = inputs.QUICK_LAYERS if environment.narrow else default
    layers = tuple(replace(layer, rounds=options.rounds or layer.rounds) for layer in layers)
    measure_attention.measure(session, layers, environment)


def _unet(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    default = inputs.CUDA_PICTURES if environment.on_gpu else inputs.CPU_PICTURES
    pictures = inputs.QUICK_PICTURES if environment.narrow else default
    for name in options.model:
        measure_unet.measure(session, name, _chosen(pictures[name], options), environment)


def _steps(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    pictures = inputs.QUICK_CORE_PICTURES if environment.narrow else inputs.STEPS_PICTURES
    for name in options.model:
        measure_steps.measure(session, name, _chosen(pictures[name], options), environment)


def _graph(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    pictures = inputs.QUICK_CORE_PICTURES if environment.narrow else inputs.GRAPH_PICTURES
    for name in options.model:
        measure_graph.measure(session, name, _chosen(pictures[name], options), environment)
    rounds = options.rounds or (1 if environment.narrow else 5)
    for clip in inputs.QUICK_CLIPS[:1] if environment.narrow else inputs.CUDA_CLIPS:
        if clip.name in inputs.GRAPH_CLIPS and clip.name in options.clips:
            measure_graph.measure_blocks(session, clip, environment, rounds)


def _transformer(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    default = inputs.CUDA_CLIPS if environment.on_gpu else inputs.CPU_CLIPS
    clips = [
        replace(
            clip,
            rounds=options.rounds or clip.rounds,
            attention_rounds=options.rounds or clip.attention_rounds,
        )
        for clip in (inputs.QUICK_CLIPS if environment.narrow else default)
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
    for clip in inputs.QUICK_CLIPS[:1] if environment.narrow else inputs.CUDA_CLIPS:
        if environment.narrow or clip.name in inputs.COMPILED_CLIPS:
            measure_compile.measure_transformer(
                session, clip, environment, rounds=rounds, compiler=compiler, cases=cases
            )


def _published(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    sizes = options.sizes or ((64,) if environment.narrow else (512, 768, 1024))
    batches = (1, 2) if environment.narrow else published.BATCHES
    # Large batches last: where time runs out, every size has been measured.
    requests = [(side, images) for images in batches for side in sizes]
    rounds = options.rounds or (1 if environment.narrow else 5)
    measure_published.measure(session, "sd15", requests, environment, rounds=rounds)


def _whole(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    rounds = options.rounds or (1 if environment.narrow else 60)
    measure_whole.measure(session, environment, rounds)


def _peers(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    # Here: a GPU machine need not have scipy, and this part is for CPUs.
    from . import measure_peers

    default = inputs.PEERS_QUICK_LAYERS if environment.narrow else inputs.PEERS_LAYERS
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
