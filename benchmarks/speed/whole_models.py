"""Whole models at full width and depth: seconds of a picture or clip, all steps of a sampling."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from comfy.model_patcher import ModelPatcher

from .. import ours, peers
from ..settings import DOWNSAMPLE, MERGE_ALL
from . import kitchen
from .diffusion_transformers import (
    FLUX,
    FLUX_SHAPED,
    FRAMES_PER_LATENT,
    WAN,
    WAN_SHAPED,
    Clip,
    Transformer,
)
from .environment import Environment
from .memory import peak_memory
from .options import WHOLE
from .results import Case
from .sampling import Request, run_all
from .session import Runner, Session
from .unets import UNETS
from .variants import UNPATCHED, Variant

STEPS = 8
NODES = ("TokenDownsample", "TokenMerge")
"""With their defaults, and only where they reduce tokens by themselves."""

WHOLE_FLUX = replace(
    FLUX_SHAPED, blocks="57 blocks", config={**FLUX, "depth": 19, "depth_single_blocks": 38}
)
WHOLE_WAN = replace(WAN_SHAPED, blocks="30 blocks", config={**WAN, "num_layers": 30})
LARGE_WAN_CONFIG = {**WAN, "dim": 5120, "ffn_dim": 13824, "num_heads": 40, "num_layers": 40}
LARGE_WAN = replace(WAN_SHAPED, name="Wan 14B", blocks="40 blocks", config=LARGE_WAN_CONFIG)


@dataclass(frozen=True)
class Video:
    """A clip of Wan, or a picture of Flux. steps: fewer where a clip takes long."""

    transformer: Transformer
    height: int
    width: int
    frames: int = 1
    steps: int = STEPS

    def narrow(self) -> Video:
        return replace(self, height=128, width=160, frames=min(self.frames, 9), steps=2)

    def as_clip(self) -> Clip:
        size = (self.height, self.width)
        return Clip(self.transformer.name, self.transformer, *size, 1, 1, frames=self.frames)


PICTURES = {"sd15": (768, 1024), "sdxl": (1024, 2048)}
VIDEOS = (
    (Video(WHOLE_FLUX, 1024, 1024), Video(WHOLE_FLUX, 2048, 2048)),
    (Video(WHOLE_WAN, 480, 832, 81), Video(WHOLE_WAN, 720, 1280, 81)),
    (Video(LARGE_WAN, 480, 832, 81, 2), Video(LARGE_WAN, 720, 1280, 81, 1)),
)
"""By model, which is built once. The least needed is last."""


def measure(session: Session, environment: Environment, rounds: int) -> None:
    """Every variant of every model, one after the other on the same weights."""
    for name, sides in PICTURES.items():
        unet = UNETS[name]
        model = unet.build(environment)
        for side in (128,) if environment.narrow else sides:
            request = unet.request(side, environment)
            variants = [*_list_common(STEPS), *_list_for_unet(unet.finest)]
            _measure(session, unet.name_in(environment), model, request, variants, STEPS, rounds)
        del model
        gc.collect()
    for videos in VIDEOS:
        if session.is_late(0):
            return
        model = videos[0].transformer.build(environment)
        for video in (each.narrow() if environment.narrow else each for each in videos):
            clip = video.as_clip()
            request = clip.request(model.model.model_config.unet_config)
            name = video.transformer.name_in(environment)
            variants = [*_list_common(video.steps), *_list_for_transformer(clip)]
            _measure(session, name, model, request, variants, video.steps, rounds)
        del model
        gc.collect()


def _list_common(steps: int) -> Iterator[Variant]:
    """Of fewer steps than ``STEPS``, which stand for later ones, all are reduced."""
    yield UNPATCHED
    apply = ours.apply if steps == STEPS else ours.apply_in_all_steps
    for node in NODES:
        yield Variant(node, "ours", partial(apply, node))


def _list_for_unet(finest: int) -> Iterator[Variant]:
    tomesd = partial(peers.tomesd, setting=MERGE_ALL, finest=finest)
    yield Variant("tomesd, ratio 0.5", "peer", tomesd)
    yield Variant("ToDo ×2", "peer", partial(peers.todo, setting=DOWNSAMPLE, finest=finest))
    yield Variant("ComfyUI's HyperTile", "peer", partial(peers.hypertile, finest=finest))


def _list_for_transformer(clip: Clip) -> Iterator[Variant]:
    for name, attend in kitchen.list_kernels(clip).items():
        yield Variant(name, "peer", partial(kitchen.install, attend=attend))


def _measure(
    session: Session,
    name: str,
    model: ModelPatcher,
    request: Request,
    variants: Sequence[Variant],
    steps: int,
    rounds: int,
) -> None:
    case = Case(
        part=WHOLE,
        model=name,
        height=request.height,
        width=request.width,
        rows=request.rows,
        dtype=str(model.model.get_dtype()).removeprefix("torch."),
        note=f"all of {steps} steps",
        frames=1 + FRAMES_PER_LATENT * ((request.frames or 1) - 1),
    )
    runners = [_make_runner(model, each, request, steps) for each in variants]
    session.measure(case, runners, rounds)


def _make_runner(model: ModelPatcher, variant: Variant, request: Request, steps: int) -> Runner:
    patched, measured = variant.patch(model), variant.start()

    def inspect() -> float:
        """One step of them: it compiles kernels, and needs as much memory as each."""
        with peak_memory(model.load_device) as peak:
            seconds = run_all(patched, request, steps, only=1)
        measured.peak_bytes = peak.bytes
        return seconds

    def again(number: int) -> float:
        return run_all(patched, request, steps)

    return Runner(measured, inspect, again)
