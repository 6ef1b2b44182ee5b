"""Whole model calls of ComfyUI's UNets."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from comfy.model_patcher import ModelPatcher

from .environment import Environment
from .model_runs import make_runner
from .sampling import Request
from .session import Runner, Session
from .unets import UNETS
from .variants import Variant, list_variants


@dataclass(frozen=True)
class Picture:
    """What is measured of one size.

    tier: most of the variants' tiers. warm_up: see ``Session.measure``.
    """

    side: int
    rounds: int
    tier: int
    warm_up: bool = True


def measure(
    session: Session,
    name: str,
    pictures: Sequence[Picture],
    environment: Environment,
    *,
    part: str = "unet",
    note: str = "",
    choose: Callable[[int, int], list[Variant]] = list_variants,
    make: Callable[[ModelPatcher, Variant, Request], Runner] = make_runner,
) -> None:
    """Every variant on the UNet ``name``, one case per picture, all on the same weights.

    choose: gives the variants for the finest layer's downsampling and the most tier. make: how one
    of them is measured.
    """
    unet = UNETS[name]
    model = unet.build(environment)
    for picture in pictures:
        request = unet.request(picture.side, environment)
        case = unet.case(part, request, environment, note)
        runners = [make(model, variant, request) for variant in choose(unet.finest, picture.tier)]
        session.measure(case, runners, picture.rounds, warm_up=picture.warm_up)
    del model
    gc.collect()
