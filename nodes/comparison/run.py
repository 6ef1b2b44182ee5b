"""Samples with both models in turn, as KSampler does it, and takes the time of each step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import comfy.sample
import comfy.utils
import torch
from comfy.model_management import throw_exception_if_processing_interrupted
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrapperExecutor, WrappersMP
from latent_preview import prepare_callback
from torch import Tensor

from ..hooks.attach import listen
from ..hooks.run.device_wait import wait_for
from ..hooks.run.report import Lines

Latent = dict[str, Any]
"""This is ComfyUI's LATENT, whose "samples" are (B, C, H, W) or (B, C, F, H, W)."""

StepCallback = Callable[[int, Tensor, Tensor, int], None]
"""It gets (number of the step, prediction, latent of the step, steps of the run)."""

SIZE_HINTS = ("downscale_ratio_spacial", "downscale_ratio_temporal")
"""With these an empty latent says for which VAE it was made. ComfyUI takes them by these names."""

WARM_UP_STEPS = 4
"""They make a whole schedule, so that some lie in its middle, where more nodes act."""


@dataclass(frozen=True)
class Sampling:
    """The inputs of KSampler, except the model."""

    seed: int
    steps: int
    cfg: float
    sampler_name: str
    scheduler: str
    positive: list[Any]
    negative: list[Any]
    latent_image: Latent
    denoise: float


@dataclass(frozen=True)
class RunResult:
    """What one sampling run gave.

    Args:
        latent: the result.
        seconds: the time of each step.
        peak_memory: the number of bytes, or None on a device where it is not measured.
        lines: pairs of the name of one of our nodes on the model and what it did.
        sampled: not with denoise 0, where ComfyUI returns the latent as it came in.
    """

    latent: Latent
    seconds: tuple[float, ...]
    peak_memory: int | None = None
    lines: Lines = ()
    sampled: bool = True


TwoResults = tuple[RunResult, RunResult]
"""The results of the two runs of one model, after the warm-up."""


def compare(
    unpatched: ModelPatcher, patched: ModelPatcher, sampling: Sampling
) -> tuple[TwoResults, TwoResults]:
    """Warm up both models, then sample with unpatched, patched, patched, unpatched; give the runs.

    In this order neither gains from what changes in the meantime, such as a CPU that gets hot.
    The models are not changed, and neither is the global random state.
    """
    warm_up = replace(sampling, steps=min(WARM_UP_STEPS, sampling.steps))
    inputs = [warm_up] * 2 + [sampling] * 4
    *done, total = accumulate((each.steps for each in inputs), initial=0)
    one, other = (_prepare(model, total) for model in (unpatched, patched))
    turns = zip((one, other, one, other, other, one), inputs, done, strict=True)
    cuda = unpatched.load_device.type == "cuda"
    with torch.random.fork_rng(range(torch.cuda.device_count()) if cuda else ()):
        runs = [run(each, before) for run, each, before in turns]
    return (runs[2], runs[5]), (runs[3], runs[4])


def sample(model: ModelPatcher, sampling: Sampling, callback: StepCallback) -> Latent:
    """What KSampler returns for ``model``; the latent that comes in is not changed."""
    latent = sampling.latent_image
    hints = {name: latent[name] for name in SIZE_HINTS if name in latent}
    start = comfy.sample.fix_empty_latent_channels(model, latent["samples"], **hints)
    samples = comfy.sample.sample(
        model,
        comfy.sample.prepare_noise(start, sampling.seed, latent.get("batch_index")),
        sampling.steps,
        sampling.cfg,
        sampling.sampler_name,
        sampling.scheduler,
        sampling.positive,
        sampling.negative,
        start,
        denoise=sampling.denoise,
        noise_mask=latent.get("noise_mask"),
        callback=callback,
        disable_pbar=not comfy.utils.PROGRESS_BAR_ENABLED,
        seed=sampling.seed,
    )
    return {name: latent[name] for name in latent if name not in SIZE_HINTS} | {"samples": samples}


class StepWatch:
    """Times the steps of one run, each from where the one before was shown.

    Args:
        show: is called after each prediction; the time that it takes is left out.
        seconds: of each step so far. The first one begins with the first request for a prediction:
            before it the model is loaded.
    """

    def __init__(self, show: StepCallback) -> None:
        self.show = show
        self.seconds: list[float] = []
        self._began: float | None = None

    def begin(self, executor: WrapperExecutor, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A wrapper around each prediction of the run."""
        if self._began is None:
            wait_for(x)
            self._began = time.perf_counter()
        predicted: Tensor = executor(x, *args, **kwargs)
        return predicted

    def end(self, step: int, prediction: Tensor, latent: Tensor, steps: int) -> None:
        """The callback after each step. An interrupt by the user ends the run."""
        wait_for(prediction)
        if self._began is not None:
            self.seconds.append(time.perf_counter() - self._began)
        throw_exception_if_processing_interrupted()
        self.show(step, prediction, latent, steps)
        wait_for(prediction)
        self._began = time.perf_counter()


def forget_peak(device: torch.device) -> None:
    """Let the next ``read_peak`` count only what is allocated from now on."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def read_peak(device: torch.device) -> int | None:
    """The most bytes that torch had allocated; None where it does not count.

    Weights are in it but with ComfyUI's DynamicVRAM, which keeps them outside of torch.
    """
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None


def _prepare(model: ModelPatcher, total: int) -> Callable[[Sampling, int], RunResult]:
    """A function that samples with a clone of ``model``.

    Its second argument is the number of steps that all runs before it made. ``total`` is the number
    of steps of all runs. The progress bar shows both.
    """
    heard: list[Lines] = []
    clone = listen(model, heard.append)
    show = prepare_callback(clone, total)

    def run(sampling: Sampling, done: int) -> RunResult:
        def show_step(step: int, prediction: Tensor, latent: Tensor, _: int) -> None:
            # Samplers that choose their own steps may take more of them.
            show(done + min(step, sampling.steps - 1), prediction, latent, total)

        watch, watched = StepWatch(show_step), clone.clone()
        watched.add_wrapper_with_key(WrappersMP.PREDICT_NOISE, "token_merge_compare", watch.begin)
        forget_peak(clone.load_device)
        latent = sample(watched, sampling, watch.end)
        lines = heard[-1] if heard else ()
        sampled = sampling.denoise > 0
        return RunResult(latent, tuple(watch.seconds), read_peak(clone.load_device), lines, sampled)

    return run
