"""Model calls as ComfyUI's own sampling makes them, timed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import comfy.sample
import comfy.samplers
import torch
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from torch import Tensor

from .clocks import Clock, Stopwatch, seconds_now
from .graphs import time_replays

SCHEDULE_STEPS = 20
"""Of the schedule that the noise levels of all measurements are taken from."""

PROMPT_TOKENS = 77

KEY = "benchmark"
HOOKS = ("attn1_patch", "attn1_output_patch", "attn2_patch", "attn2_output_patch")


@dataclass(frozen=True)
class Request:
    """What one model call computes.

    height, width: of the picture. images: of one batch. guided: prompt and negative prompt in one
    call, so twice as many rows. context: channels of the prompt; pooled: of its summary.
    channels, frames: of the latent; None: it is a picture's and has no frames.
    """

    height: int
    width: int
    images: int = 1
    guided: bool = False
    context: int = 768
    prompt_tokens: int = PROMPT_TOKENS
    pooled: int = 1280
    channels: int = 4
    frames: int | None = None

    @property
    def rows(self) -> int:
        return self.images * (2 if self.guided else 1)

    @property
    def latent_size(self) -> tuple[int, ...]:
        """(B, C, H, W), or (B, C, F, H, W)."""
        frames = () if self.frames is None else (self.frames,)
        sides = (math.ceil(self.height / 8), math.ceil(self.width / 8))
        return (self.images, self.channels, *frames, *sides)


@dataclass(frozen=True)
class Timing:
    """Means over the model calls of one run. hooks: seconds in attention patches."""

    seconds: float
    hooks: float | None


class CallError(RuntimeError):
    """The model was not called as the measurement says, or its result is not finite."""


def run(
    model: ModelPatcher,
    request: Request,
    *,
    first: int = 0,
    steps: int = 1,
    hooks: bool = True,
    clock: Clock = seconds_now,
) -> Timing:
    """Sample ``steps`` steps and time the model calls, everything that a node wraps around them
    included.

    first: where in the middle of the schedule to start; calls at another noise level decide anew.
    hooks: also time the attention patches; they must then not be compiled. clock: of the calls.
    Raises CallError.
    """
    device = model.load_device
    clone = model.clone()
    watch = Stopwatch(device)
    calls: list[float] = []
    rows: list[int] = []

    def timed_call(apply_model: Callable[..., Tensor], call: dict[str, Any]) -> Tensor:
        start = clock(device)
        result = apply_model(call["input"], call["timestep"], **call["c"])
        calls.append(clock(device) - start)
        rows.append(len(call["input"]))
        return result

    def time_hooks(executor: WrapperExecutor, *args: Any, **kwargs: Any) -> Tensor:
        *before, options = args
        patches = dict(options.get("patches", {}))
        for name in HOOKS:
            patches[name] = [watch.timed(patch) for patch in patches.get(name, ())]
        return executor(*before, {**options, "patches": patches}, **kwargs)

    clone.set_model_unet_function_wrapper(timed_call)
    if hooks:
        clone.add_wrapper_with_key(WrappersMP.APPLY_MODEL, KEY, time_hooks)
    _check(sample(clone, request, first, steps), rows, request, steps)
    return Timing(sum(calls) / steps, watch.seconds() / steps if hooks else None)


def run_in_a_row(model: ModelPatcher, request: Request, steps: int) -> Timing:
    """Sample ``steps`` steps, timed from the first model call to the end of the last.

    In between nothing here waits for the device. Raises CallError.
    """
    device = model.load_device
    clone = model.clone()
    began: list[float] = []
    rows: list[int] = []

    def note(apply_model: Callable[..., Tensor], call: dict[str, Any]) -> Tensor:
        if not began:
            began.append(seconds_now(device))
        rows.append(len(call["input"]))
        return apply_model(call["input"], call["timestep"], **call["c"])

    clone.set_model_unet_function_wrapper(note)
    latent = sample(clone, request, 0, steps)
    seconds = seconds_now(device) - began[0]
    _check(latent, rows, request, steps)
    return Timing(seconds / steps, None)


def run_replayed(model: ModelPatcher, request: Request, *, first: int = 0, replays: int) -> Timing:
    """Sample one step whose model call is captured as a CUDA graph, and time its replays.

    Of the diffusion model: around it ComfyUI copies its noise levels from the processor.
    first: as in ``run``. Raises CallError, and RuntimeError where the call cannot be captured.
    """
    clone = model.clone()
    timed: list[float] = []
    rows: list[int] = []

    def replay(executor: WrapperExecutor, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        again = partial(executor, x, *args, **kwargs)
        result, seconds = time_replays(again, model.load_device, replays)
        timed.append(seconds)
        rows.append(len(x))
        return result

    clone.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, KEY, replay)
    latent = sample(clone, request, first, 1)
    _check(latent, rows, request, 1)
    return Timing(timed[0], None)


def _check(latent: Tensor, rows: list[int], request: Request, steps: int) -> None:
    """Raises CallError. rows: of each call of the model."""
    if rows != [request.rows] * steps:
        raise CallError(f"the model was called with {rows} rows, expected {request.rows} per step")
    if not latent.isfinite().all():
        raise CallError("the model's output is not finite")


def with_lengths_noted(
    model: ModelPatcher, rows: int
) -> tuple[ModelPatcher, Counter[tuple[int, int]]]:
    """A clone that counts how often self-attention gets how many (queries, keys); the counter.

    rows: of a model call. Where a node splits them into tiles or groups, the queries of all of them
    count, and the keys that each query reads.
    """
    lengths: Counter[tuple[int, int]] = Counter()
    options = model.model_options["transformer_options"]
    inner = options.get("optimized_attention_override")

    def note(attention: Callable[..., Tensor], q: Tensor, k: Tensor, *args: Any, **kw: Any) -> Any:
        if k.shape[1] != PROMPT_TOKENS:
            queries = q.shape[1] * q.shape[0] // rows
            lengths[queries, k.shape[1] * k.shape[0] // q.shape[0]] += 1
        return inner(attention, q, k, *args, **kw) if inner else attention(q, k, *args, **kw)

    clone = model.clone()
    clone.model_options["transformer_options"]["optimized_attention_override"] = note
    return clone, lengths


@torch.inference_mode()
def sample(model: ModelPatcher, request: Request, first: int = 0, steps: int = 1) -> Tensor:
    """The latents after ``steps`` steps of ComfyUI's sampling from a fixed seed and prompt."""
    sampling = model.get_model_object("model_sampling")
    schedule = comfy.samplers.calculate_sigmas(sampling, "normal", SCHEDULE_STEPS)
    first = SCHEDULE_STEPS // 4 + first % (SCHEDULE_STEPS // 2)
    generator = torch.Generator().manual_seed(0)
    prompts = [
        [
            [
                torch.randn(1, request.prompt_tokens, request.context, generator=generator),
                {"pooled_output": torch.randn(1, request.pooled, generator=generator)},
            ]
        ]
        for _ in range(2)
    ]
    noise = torch.randn(request.latent_size, generator=generator)
    return comfy.sample.sample_custom(
        model,
        noise,
        4.0 if request.guided else 1.0,
        comfy.samplers.sampler_object("euler"),
        schedule[first : first + steps + 1],
        *prompts,
        torch.zeros_like(noise),
        disable_pbar=True,
        seed=0,
    )
