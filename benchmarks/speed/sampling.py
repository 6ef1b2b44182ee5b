"""Model calls as ComfyUI's own sampling makes them, timed."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import comfy.sample
import comfy.samplers
import torch
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from torch import Tensor

from ..attention_watch import find_tokens_dim, watch_attention

SCHEDULE_STEPS = 20
"""The schedule that the noise levels of all measurements are taken from has so many steps."""

PROMPT_TOKENS = 77


@dataclass(frozen=True)
class Request:
    """What one model call computes.

    height, width: of the picture. guided: prompt and negative prompt in one call, so two rows.
    context: channels of the prompt; pooled: of its summary. channels, frames: of the latent; None:
    it is a picture's and has no frames.
    """

    height: int
    width: int
    guided: bool = False
    context: int = 768
    prompt_tokens: int = PROMPT_TOKENS
    pooled: int = 1280
    channels: int = 4
    frames: int | None = None

    @property
    def rows(self) -> int:
        return 2 if self.guided else 1

    @property
    def latent_size(self) -> tuple[int, ...]:
        """(B, C, H, W), or (B, C, F, H, W)."""
        frames = () if self.frames is None else (self.frames,)
        sides = (math.ceil(self.height / 8), math.ceil(self.width / 8))
        return (1, self.channels, *frames, *sides)


class CallError(RuntimeError):
    """The model was not called as the measurement says, or its result is not finite."""


def run(model: ModelPatcher, request: Request, first: int = 0) -> float:
    """Sample one step; the seconds of its model call, with everything that a node wraps around it.

    first: where in the middle of the schedule to start; calls at another noise level decide anew.
    Raises CallError.
    """
    device = model.load_device
    clone = model.clone()
    timed: list[float] = []
    rows: list[int] = []

    def time_call(apply_model: Callable[..., Tensor], call: dict[str, Any]) -> Tensor:
        start = seconds_now(device)
        result = apply_model(call["input"], call["timestep"], **call["c"])
        timed.append(seconds_now(device) - start)
        rows.append(len(call["input"]))
        return result

    clone.set_model_unet_function_wrapper(time_call)
    _check(sample(clone, request, first), rows, request)
    return timed[0]


def run_replayed(model: ModelPatcher, request: Request, first: int, replays: int) -> float:
    """Sample one step whose model call is captured as a CUDA graph; the seconds of a replay.

    Of the diffusion model: around it ComfyUI copies its noise levels from the processor. On a CPU,
    which has no such graphs, the call is repeated.
    Raises CallError, and RuntimeError where the call waits for the GPU.
    """
    device = model.load_device
    clone = model.clone()
    timed: list[float] = []
    rows: list[int] = []

    def replay(executor: WrapperExecutor, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        # Once before: what it computes once and keeps must not be captured.
        result: Tensor = executor(x, *args, **kwargs)
        again: Callable[[], object] = partial(executor, x, *args, **kwargs)
        if device.type == "cuda":
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                result = executor(x, *args, **kwargs)
            again = graph.replay
            again()
        start = seconds_now(device)
        for _ in range(replays):
            again()
        timed.append((seconds_now(device) - start) / replays)
        rows.append(len(x))
        return result

    clone.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "benchmark", replay)
    _check(sample(clone, request, first), rows, request)
    return timed[0]


def seconds_now(device: torch.device) -> float:
    """Wall-clock seconds once the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _check(latent: Tensor, rows: list[int], request: Request) -> None:
    """Raises CallError. rows: of each call of the model."""
    if rows != [request.rows]:
        raise CallError(f"the model was called with {rows} rows, expected {request.rows}")
    _check_finite(latent)


def _check_finite(latent: Tensor) -> None:
    """Raises CallError."""
    if not latent.isfinite().all():
        raise CallError("the model's output is not finite")


def with_lengths_noted(
    model: ModelPatcher, request: Request
) -> tuple[ModelPatcher, Counter[tuple[int, int]]]:
    """A clone that counts how often self-attention gets how many (queries, keys); the counter.

    Where a node splits them into tiles or groups, the queries of all of them count, and the keys
    that each query reads.
    """
    lengths: Counter[tuple[int, int]] = Counter()

    def note(q: Tensor, k: Tensor, options: Mapping[str, Any]) -> None:
        dim = find_tokens_dim(options)
        if k.shape[dim] != request.prompt_tokens:
            queries = q.shape[dim] * q.shape[0] // request.rows
            lengths[queries, k.shape[dim] * k.shape[0] // q.shape[0]] += 1

    return watch_attention(model, note), lengths


def run_all(model: ModelPatcher, request: Request, steps: int, only: int | None = None) -> float:
    """Sample all of so many steps; the seconds, with all that ComfyUI does around its calls.

    only: so many of them, from the middle of the schedule. Raises CallError.
    """
    start = seconds_now(model.load_device)
    latent = sample_between(model, request, steps, (steps - only) // 2 if only else 0, only)
    seconds = seconds_now(model.load_device) - start
    _check_finite(latent)
    return seconds


def sample(model: ModelPatcher, request: Request, first: int = 0) -> Tensor:
    """The latents after one step of ComfyUI's sampling from a fixed seed and prompt."""
    first = SCHEDULE_STEPS // 4 + first % (SCHEDULE_STEPS // 2)
    return sample_between(model, request, SCHEDULE_STEPS, first, 1)


@torch.inference_mode()
def sample_between(
    model: ModelPatcher, request: Request, steps: int, first: int, count: int | None
) -> Tensor:
    """The latents after ``count`` of ``steps`` from number ``first`` on; None: all the rest."""
    sampling = model.get_model_object("model_sampling")
    schedule = comfy.samplers.calculate_sigmas(sampling, "normal", steps)
    last = len(schedule) if count is None else first + count + 1
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
        schedule[first:last],
        *prompts,
        torch.zeros_like(noise),
        disable_pbar=True,
        seed=0,
    )
