"""Ours beside the peers, until the ratios are sure: CPU time of one thread, in turns both ways."""

from __future__ import annotations

from collections.abc import Sequence

from comfy.model_patcher import ModelPatcher

from .. import settings
from . import attention_stage, certainty, clocks, variants
from .environment import Environment
from .measure_attention import AttentionLayer
from .model_runs import make_runner
from .results import Case
from .sampling import Request
from .session import Session
from .unets import UNETS

COMPARED = (settings.MERGE_ALL, settings.MERGE_QUERIES, settings.DOWNSAMPLE_2)
NOTE = "CPU seconds of one thread"


def measure(
    session: Session,
    layers: Sequence[AttentionLayer],
    pictures: Sequence[tuple[str, int]],
    environment: Environment,
) -> None:
    """Blocks alone, then whole models. pictures: (name of the UNet, pixels of a side).

    A layer says how many rounds are measured at most. Pictures take as many as the first layer.
    """
    with clocks.one_thread():
        for layer in layers:
            model, context = attention_stage.build(layer.channels, layer.heads, environment)
            request = Request(8 * layer.side, 8 * layer.side, context=context)
            name = f"{layer.model}'s self-attention ({layer.channels} channels)"
            case = Case("peers", name, layer.side, layer.side, 1, environment.dtype_name, NOTE)
            _measure(session, case, model, request, finest=1, rounds=layer.rounds)
        for name, side in pictures:
            unet = UNETS[name]
            model = unet.build(environment)
            request = unet.request(side, environment)
            case = unet.case("peers", request, environment, NOTE)
            _measure(session, case, model, request, unet.finest, rounds=layers[0].rounds)


def _measure(
    session: Session, case: Case, model: ModelPatcher, request: Request, finest: int, rounds: int
) -> None:
    runners = [
        make_runner(model, variant, request, hooks=False, clock=clocks.thread_seconds_now)
        for variant in _list_variants(finest)
    ]
    session.measure(case, runners, rounds, is_enough=certainty.is_sure)


def _list_variants(finest: int) -> list[variants.Variant]:
    """The default matching of each setting, its limit and its peers."""
    return [
        variant
        for variant in variants.list_variants(finest)
        if variant.setting in COMPARED
        and variant.steps == 1
        and (variant.kind != "ours" or variant.name in ("ours, local", "ours", "ours, interleaved"))
    ]
