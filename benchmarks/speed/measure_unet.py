"""Whole model calls of ComfyUI's UNets."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass

from . import variants
from .environment import Environment
from .model_runs import make_runner
from .session import Session
from .unets import UNETS


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
) -> None:
    """Every variant on the UNet ``name``, one case per picture, all on the same weights."""
    unet = UNETS[name]
    model = unet.build(environment)
    for picture in pictures:
        request = unet.request(picture.side, environment)
        case = unet.case("unet", request, environment)
        runners = [
            make_runner(model, variant, request)
            for variant in variants.list_variants(unet.finest, picture.tier)
        ]
        session.measure(case, runners, picture.rounds, warm_up=picture.warm_up)
    del model
    gc.collect()
