"""The table that ToMe for Stable Diffusion published, and what it left out.

Its repository gives seconds per image of 50 steps on an A100, at 512, 768 and 1024 pixels and
batches of 1 to 10, for plain, ToMe and ToMe with xFormers. Its plain is attention that is not
fused; ours stands beside both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from comfy.model_patcher import ModelPatcher

from .. import ours, peers, settings
from .environment import Environment
from .limits import with_tokens_cut_off
from .model_runs import make_runner
from .published import STEPS
from .session import Session
from .unets import UNETS
from .variants import PLAIN, Variant


def list_variants(finest: int) -> list[Variant]:
    """Plain is fused; every peer with the attention it was published with, and with ours."""
    merge, downsample = settings.MERGE_ALL, settings.DOWNSAMPLE_2
    tomesd = partial(peers.tomesd, setting=merge, finest=finest)
    downsampled = partial(ours.token_downsample, setting=downsample, method="stratified")
    found = [
        PLAIN,
        Variant("plain, not fused", "peer", peers.with_unfused_attention),
        Variant("tomesd, not fused", "peer", _both(tomesd, peers.with_unfused_attention), merge),
        Variant(
            "limit", "limit", partial(with_tokens_cut_off, setting=merge, finest=finest), merge
        ),
        Variant("ours", "ours", partial(ours.token_merge, setting=merge), merge),
        Variant("tomesd", "peer", tomesd, merge),
        Variant(
            "limit",
            "limit",
            partial(with_tokens_cut_off, setting=downsample, finest=finest),
            downsample,
        ),
        Variant("ours", "ours", downsampled, downsample),
        Variant("ToDo", "peer", partial(peers.todo, setting=downsample, finest=finest), downsample),
    ]
    if peers.has_xformers():
        found += [
            Variant("plain, xFormers", "peer", peers.with_xformers),
            Variant("tomesd, xFormers", "peer", _both(tomesd, peers.with_xformers), merge),
        ]
    return found


def _both(
    first: Callable[[ModelPatcher], ModelPatcher], second: Callable[[ModelPatcher], ModelPatcher]
) -> Callable[[ModelPatcher], ModelPatcher]:
    return lambda model: second(first(model))


def measure(
    session: Session,
    name: str,
    inputs: Sequence[tuple[int, int]],
    environment: Environment,
    *,
    rounds: int,
) -> None:
    """inputs: (side, images) of each case; every call holds prompt and negative prompt."""
    unet = UNETS[name]
    model = unet.build(environment)
    for side, images in inputs:
        request = replace(unet.request(side, environment, images), guided=True)
        note = f"{images} images; seconds per image are those of {STEPS} calls over {images}"
        case = unet.case("published", request, environment, note)
        session.measure(
            case,
            [make_runner(model, variant, request) for variant in list_variants(unet.finest)],
            rounds,
        )
