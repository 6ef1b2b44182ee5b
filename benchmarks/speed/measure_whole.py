"""What the nodes cost where all layers are left whole: time of the processor alone.

The models have the structure of real ones and few channels: they take long to start their
operations, and little time to compute them. No result is waited for.
"""

from __future__ import annotations

from functools import partial
from math import inf
from unittest import mock

import comfy.supported_models
from comfy.model_patcher import ModelPatcher
from token_merge.tome_core import layer_size

from .. import ours
from ..random_models import build_model
from . import clocks
from .diffusion_transformers import NARROW_FLUX
from .environment import Environment
from .model_runs import make_runner
from .results import Case
from .sampling import Request
from .session import Session
from .unets import SD15
from .variants import PLAIN, Variant

STEPS = 6
SIDE = 64
CHANNELS = 32
UNET = {**SD15, "model_channels": CHANNELS, "context_dim": CHANNELS}
FLUX = {**NARROW_FLUX, "depth": 10, "depth_single_blocks": 20}


def measure(session: Session, environment: Environment, rounds: int) -> None:
    """A UNet with 16 transformer blocks, 5 of them with the most tokens, then 30 blocks of Flux."""
    make = partial(build_model, dtype=environment.dtype, device=environment.device)
    _measure(
        session,
        "SD 1.5's structure, narrow",
        make(comfy.supported_models.SD15, UNET),
        Request(SIDE, SIDE, context=CHANNELS),
        environment,
        rounds,
    )
    flux = Request(SIDE, SIDE, context=32, prompt_tokens=12, pooled=16, channels=16)
    name = "Flux's structure, narrow, 30 blocks"
    _measure(session, name, make(comfy.supported_models.Flux, FLUX), flux, environment, rounds)


def _measure(
    session: Session,
    name: str,
    model: ModelPatcher,
    request: Request,
    environment: Environment,
    rounds: int,
) -> None:
    note = "seconds of the processor; every layer is left whole"
    case = Case("whole", name, SIDE, SIDE, request.rows, environment.dtype_name, note)
    variants = [Variant(PLAIN.name, PLAIN.kind, PLAIN.patch, steps=STEPS)] + [
        Variant(node_id, "ours", partial(ours.apply, node_id), steps=STEPS)
        for node_id in ("TokenDownsample", "TokenMerge")
    ]
    clock = clocks.thread_seconds_now
    with (
        clocks.one_thread(),
        mock.patch.object(layer_size, "find_least", return_value=inf),
    ):
        runners = [make_runner(model, each, request, hooks=False, clock=clock) for each in variants]
        session.measure(case, runners, rounds)
