"""Diffusion transformers: whole calls of few blocks, and attention alone."""

from __future__ import annotations

import gc
from collections.abc import Sequence

from . import kitchen, transformer_stage
from .diffusion_transformers import Clip
from .environment import Environment
from .model_runs import make_replaying_runner, make_runner
from .results import Case
from .session import Session
from .variants import Variant, list_for_transformer


def measure(session: Session, clips: Sequence[Clip], environment: Environment) -> None:
    """Whole calls of every clip, then attention alone: two cases per clip, one of a long one."""
    for clip in clips:
        _measure_blocks(session, clip, environment, replayed=False)
    for clip in clips:
        if not clip.is_long:
            variants = list_for_transformer(clip)
            _measure_attention(session, clip, environment, "transformer attention", variants)


def measure_beside(session: Session, clips: Sequence[Clip], environment: Environment) -> None:
    """Attention alone, beside comfy-kitchen's kernels."""
    for clip in clips:
        _measure_attention(session, clip, environment, "rivals", kitchen.list_variants(clip))


def measure_replayed(session: Session, clip: Clip, environment: Environment) -> None:
    """Whole calls as CUDA graphs."""
    _measure_blocks(session, clip, environment, replayed=True)


def _measure_attention(
    session: Session, clip: Clip, environment: Environment, part: str, variants: Sequence[Variant]
) -> None:
    calls = transformer_stage.count_calls(environment)
    model = transformer_stage.build(clip, environment)
    name = clip.transformer.attention_in(environment)
    case = _make_case(part, name, clip, environment)
    if calls > 1:
        case.note += f"; the mean of {calls} attention calls in a row"
    request = clip.request(model.model.model_config.unet_config)
    runners = [make_runner(model, variant, request, calls) for variant in variants]
    session.measure(case, runners, clip.attention_rounds, warm_up=clip.warm_up)


def _measure_blocks(
    session: Session, clip: Clip, environment: Environment, *, replayed: bool
) -> None:
    model = clip.transformer.build(environment)
    part, make = ("graph", make_replaying_runner) if replayed else ("transformer", make_runner)
    case = _make_case(part, clip.transformer.name_in(environment), clip, environment)
    request = clip.request(model.model.model_config.unet_config)
    runners = [make(model, variant, request) for variant in list_for_transformer(clip)]
    session.measure(case, runners, clip.rounds, warm_up=clip.warm_up)
    del model, runners
    gc.collect()


def _make_case(part: str, model: str, clip: Clip, environment: Environment) -> Case:
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
