"""Which cases a command measures: enough rounds for a ratio, few enough to end in time."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from unittest import mock

import torch
from token_merge.tome_core import layer

from . import inputs, measure_transformer, measure_unet, whole_models
from .diffusion_transformers import Clip
from .environment import Environment
from .measure_unet import Picture
from .options import BESIDE, WHOLE
from .session import Session


def measure(session: Session, options: argparse.Namespace) -> None:
    """The parts that the command names; where time may run out, the least needed are last.

    But for whole models, tokens are also reduced where the nodes would not reduce them, as too
    little would be saved.
    Raises RuntimeError where this machine cannot measure the part.
    """
    environment = Environment(torch.device(options.device), options.quick)
    if environment.narrow:
        # Calls this small spend their time waiting for one another's threads.
        torch.set_num_threads(1)
    can_replay = environment.on_gpu or environment.narrow
    if options.part == "graph" and not can_replay:
        raise RuntimeError("part is graph, which is measured on a GPU")
    if options.part == WHOLE:
        # As users have them: only where the nodes reduce tokens by themselves.
        return whole_models.measure(session, environment, options.rounds or 1)
    least = mock.patch.dict(layer.LEAST_FLOPS, clear=True)
    with least, mock.patch.dict(layer.PAIR_TIMES, dict.fromkeys(layer.PAIR_TIMES, 0.0)):
        if options.part in ("unet", "all"):
            _unet(session, options, environment)
        if options.part in ("transformer", "all"):
            measure_transformer.measure(session, _clips(options, environment), environment)
        if options.part in ("graph", "all") and can_replay:
            _graph(session, options, environment)
        if options.part == BESIDE:
            clips = [clip for clip in _clips(options, environment) if clip.name in inputs.LARGE]
            measure_transformer.measure_beside(session, clips, environment)


def _unet(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    default = inputs.CUDA_PICTURES if environment.on_gpu else inputs.CPU_PICTURES
    for name, pictures in _pictures(default, options, environment).items():
        measure_unet.measure(session, name, pictures, environment)


def _graph(session: Session, options: argparse.Namespace, environment: Environment) -> None:
    for name, pictures in _pictures(inputs.GRAPH_PICTURES, options, environment).items():
        measure_unet.measure(session, name, pictures, environment, replayed=True)
    for clip in _clips(options, environment):
        if clip.name in inputs.GRAPH_CLIPS:
            measure_transformer.measure_replayed(session, clip, environment)


def _pictures(
    default: Mapping[str, Sequence[Picture]],
    options: argparse.Namespace,
    environment: Environment,
) -> dict[str, list[Picture]]:
    """By model: the default pictures, with what the command says instead."""
    known = inputs.QUICK_PICTURES if environment.narrow else default
    found: dict[str, list[Picture]] = {name: [] for name in options.model}
    for name, chosen in found.items():
        for side in options.sizes or [picture.side for picture in known[name]]:
            nearest = min(known[name], key=lambda one: abs(one.side - side))
            rounds = options.rounds or nearest.rounds
            chosen.append(replace(nearest, side=side, rounds=rounds))
    return found


def _clips(options: argparse.Namespace, environment: Environment) -> list[Clip]:
    default = inputs.CUDA_CLIPS if environment.on_gpu else inputs.CPU_CLIPS
    return [
        replace(
            clip,
            rounds=options.rounds or clip.rounds,
            attention_rounds=options.rounds or clip.attention_rounds,
        )
        for clip in (inputs.QUICK_CLIPS if environment.narrow else default)
        if clip.name in options.clips
    ]
