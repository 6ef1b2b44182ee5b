"""Whole model calls of ComfyUI's UNets."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass

from .environment import Environment
from .model_runs import make_replaying_runner, make_runner
from .results import Case
from .session import Session
from .unets import UNETS
from .variants import list_for_unet


@dataclass(frozen=True)
class Picture:
    """side: in pixels. warm_up: see ``Session.measure``."""

    side: int
    rounds: int
    warm_up: bool = True


def measure(
    session: Session,
    name: str,
    pictures: Sequence[Picture],
    environment: Environment,
    *,
    replayed: bool = False,
) -> None:
    """Every variant on the UNet ``name``, one case per picture, all on the same weights.

    replayed: as CUDA graphs, without the peers, whose code was not written to be captured.
    """
    unet = UNETS[name]
    model = unet.build(environment)
    make = make_replaying_runner if replayed else make_runner
    listed = [each for each in list_for_unet(unet.finest) if not (replayed and each.kind == "peer")]
    for picture in pictures:
        request = unet.request(picture.side, environment)
        case = Case(
            "graph" if replayed else "unet",
            unet.name_in(environment),
            request.height,
            request.width,
            request.rows,
            environment.dtype_name,
        )
        runners = [make(model, variant, request) for variant in listed]
        session.measure(case, runners, picture.rounds, warm_up=picture.warm_up)
    del model
    gc.collect()
