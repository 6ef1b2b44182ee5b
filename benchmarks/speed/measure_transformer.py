"""Diffusion transformers: whole calls of few blocks, and attention alone."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from comfy.model_patcher import ModelPatcher

from .. import ours, settings
from ..settings import Setting
from . import limits, transformer_stage, windows
from .attention_watch import AttentionWatch
from .diffusion_transformers import Clip
from .environment import Environment
from .model_runs import begin, with_peak_noted
from .results import Case
from .sampling import Request, Timing, run
from .session import Runner, Session
from .variants import PLAIN, Variant
from .windows import WINDOWS, WINDOWS_2, WINDOWS_MERGE


def measure(session: Session, clips: Sequence[Clip], environment: Environment) -> None:
    """Whole calls of every clip, then attention alone: two cases per clip, one of a long one."""
    model: ModelPatcher | None = None
    built = None
    for clip in clips:
        if built != clip.transformer:
            model = None  # before the next one is built
            gc.collect()
            model, built = clip.transformer.build(environment), clip.transformer
        assert model is not None
        case = make_case("transformer", clip.transformer.name_in(environment), clip, environment)
        _measure(session, case, clip, clip.rounds, model, list_variants(clip))
    model = None
    gc.collect()
    for clip in clips:
        if clip.is_long:
            continue
        stage = transformer_stage.build(clip, environment)
        name = clip.transformer.attention_in(environment)
        case = make_case("transformer attention", name, clip, environment)
        calls = transformer_stage.count_calls(environment)
        if calls > 1:
            case.note += f"; the mean of {calls} attention calls in a row"
        _measure(session, case, clip, clip.attention_rounds, stage, list_variants(clip), calls)


def make_case(part: str, model: str, clip: Clip, environment: Environment) -> Case:
    """Nothing is measured in it yet. model: its name."""
    stream = clip.stream
    of_prompt = f" and {stream.before} of the prompt" if stream.before else ""
    return Case(
        part=part,
        model=model,
        height=clip.height,
        width=clip.width,
        rows=1,
        dtype=str(clip.transformer.dtype_in(environment)).removeprefix("torch."),
        note=f"{stream.grid.tokens} tokens of the picture{of_prompt}",
        frames=clip.frames,
    )


def _measure(
    session: Session,
    case: Case,
    clip: Clip,
    rounds: int,
    model: ModelPatcher,
    variants: list[Variant],
    calls: int = 1,
) -> None:
    request = clip.request(model.model.model_config.unet_config)
    runners = [_runner(model, variant, request, calls) for variant in variants]
    session.measure(case, runners, rounds, warm_up=clip.warm_up)


def list_variants(clip: Clip) -> list[Variant]:
    """Plain, then both nodes without and with local windows, each with its limit unless calls are
    long.
    """
    found = [PLAIN]
    for setting, node in (
        (settings.MERGE, partial(ours.token_merge, local_window="off")),
        (settings.MERGE_ALL, ours.token_merge),
        (settings.DOWNSAMPLE_2, _downsample),
    ):
        cut = partial(limits.with_picture_cut_off, setting=setting, stream=clip.stream)
        found.append(Variant("limit", "limit", cut, setting))
        found.append(Variant("ours", "ours", partial(node, setting=setting), setting))
    for setting in WINDOWS:
        if setting in (WINDOWS_2, WINDOWS_MERGE):
            cut_out = partial(windows.with_tiles_cut_out, setting=setting, stream=clip.stream)
            found.append(Variant("limit", "limit", cut_out, setting))
        of_windows = partial(windows.with_windows, setting=setting)
        found.append(Variant("ours", "ours", of_windows, setting))
    return [each for each in found if not (clip.is_long and each.kind == "limit")]


def _downsample(model: ModelPatcher, setting: Setting) -> ModelPatcher:
    """Without local windows, whose token counts are not those of the limit."""
    return ours.token_downsample(model, setting, method="stratified", local_window="off")


def _runner(model: ModelPatcher, variant: Variant, request: Request, calls: int) -> Runner:
    """Measures ``variant`` of ``model``, which is made once and used for every round.

    calls: in one call of the model, which the seconds are divided by.
    """
    patched, measured = variant.patch(model), begin(variant)

    def time_one(one: ModelPatcher, number: int) -> Timing:
        timing = run(one, request, first=number, hooks=False)
        return replace(timing, seconds=timing.seconds / calls)

    def watched(number: int) -> Timing:
        watch = AttentionWatch(model.load_device, request.prompt_tokens)
        timing = time_one(watch.attach(patched), number)
        lengths = sorted(watch.lengths.items(), reverse=True)
        measured.lengths = [[*sizes, count] for sizes, count in lengths]
        # Local windows call no attention function, so their time cannot be told from the hooks'.
        hooks = watch.seconds_in_override() / calls if lengths else None
        return replace(timing, hooks=hooks)

    return with_peak_noted(model, measured, watched, partial(time_one, patched))
