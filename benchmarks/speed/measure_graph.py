"""Whole calls as CUDA graphs: what a GPU takes where it never waits for the processor.

Without the peers, whose code was not written to be captured.
"""

from __future__ import annotations

from collections.abc import Sequence

from comfy.model_patcher import ModelPatcher

from . import measure_transformer, variants
from .diffusion_transformers import Clip
from .environment import Environment
from .model_runs import begin
from .results import Case
from .sampling import Request, Timing, run, run_replayed
from .session import Runner, Session
from .unets import UNETS
from .variants import Variant

REPLAYS = 10
NOTE = "replayed CUDA graphs"


def measure_unet(
    session: Session, name: str, sides: Sequence[int], environment: Environment, rounds: int
) -> None:
    """One case per size of the UNet ``name``."""
    unet = UNETS[name]
    model = unet.build(environment)
    for side in sides:
        request = unet.request(side, environment)
        case = unet.case("graph", request, environment, NOTE)
        _measure(session, case, model, request, variants.list_variants(unet.finest, 1), rounds)


def measure_transformer_blocks(
    session: Session, clip: Clip, environment: Environment, rounds: int
) -> None:
    """A few blocks of a transformer."""
    model = clip.transformer.build(environment)
    request = clip.request(model.model.model_config.unet_config)
    name = clip.transformer.name_in(environment)
    case = measure_transformer.make_case("graph", name, clip, environment)
    case.note += f"; {NOTE}"
    _measure(session, case, model, request, measure_transformer.list_variants(clip), rounds)


def _measure(
    session: Session,
    case: Case,
    model: ModelPatcher,
    request: Request,
    chosen: Sequence[Variant],
    rounds: int,
) -> None:
    runners = [_runner(model, each, request) for each in chosen if each.kind != "peer"]
    session.measure(case, runners, rounds)


def _runner(model: ModelPatcher, variant: Variant, request: Request) -> Runner:
    patched = variant.patch(model)
    replays = REPLAYS if model.load_device.type == "cuda" else 1

    def inspect() -> Timing:
        """As every run: it compiles kernels, which a capture must not."""
        return run(patched, request, hooks=False)

    def again(number: int) -> Timing:
        return run_replayed(patched, request, first=number, replays=replays)

    return Runner(begin(variant), inspect, again)
