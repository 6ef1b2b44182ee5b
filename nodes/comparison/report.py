"""Says in lines of text what was measured, what our nodes did, and on which machine."""

from __future__ import annotations

import math
import platform
import re
from pathlib import Path
from statistics import fmean

import comfyui_version
import torch
from comfy.ldm.modules.attention import optimized_attention
from comfy.model_management import get_torch_device_name
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from .run import Sampling, TwoResults

CLEAR = 0.02
"""A speed-up closer to 1 than this cannot be told from chance by two rounds."""
STEADY = 1.2
"""Rounds whose speed-ups differ by more than this factor do not agree."""
IN_WORDS = {45: "hard to tell apart", 35: "small differences", 0: "clear differences"}
"""What a PSNR of latents from this one on means for the eye. Seen on sheets of the small Flux for
4 steps: 53 to 55 dB with our defaults, 47 and 48 in all steps, 40 with 3 steps, 31 with 2."""

CONSTANT = 1e-5
"""A latent whose values differ by at most this share of the largest one is constant but for
rounding."""
IDENTICAL = "identical"
PACK = Path(__file__).parents[2]


def describe_results(unpatched: TwoResults, patched: TwoResults) -> list[str]:
    """What was measured and what our nodes did.

    The verdict comes first, since a node shows few lines at once.
    """
    if not unpatched[0].sampled:
        return ["Nothing was compared: with denoise 0 no step is sampled, and no model runs"]
    difference = _describe_difference(unpatched, patched)
    return [
        *_describe_speed(unpatched, patched, difference),
        f"Difference of the latents: {difference}",
        f"Peak memory: {_describe_memory(unpatched, patched)}",
        *_describe_nodes(unpatched, patched),
    ]


def describe_surroundings(
    unpatched: ModelPatcher, patched: ModelPatcher, sampling: Sampling
) -> list[str]:
    """How both models were compared, and with what, so that a bug report holds it."""
    models = dict.fromkeys(map(_name_model, (unpatched, patched)))
    return [
        "Measured: each model twice in turn, after a warm-up",
        f"Model: {' and '.join(models)}",
        f"Latent: {_describe_latent(sampling)}",
        f"Sampling: {sampling.steps} steps, cfg {sampling.cfg:g}, {sampling.sampler_name}, "
        f"{sampling.scheduler}, denoise {sampling.denoise:g}, seed {sampling.seed}",
        f"Device: {_name_device(unpatched.load_device)}, {optimized_attention.__name__}",
        f"Versions: Token Merge {_find_version()}, ComfyUI {comfyui_version.__version__}, "
        f"torch {torch.__version__}, Python {platform.python_version()}",
    ]


def split_streams(samples: Tensor) -> list[Tensor]:
    """The latents that one LATENT holds: picture and sound, for some models."""
    return list(samples.unbind()) if samples.is_nested else [samples]


def measure_psnr(result: Tensor, unpatched: Tensor) -> float:
    """Peak signal-to-noise ratio in dB; infinite where both are equal. Both are of one shape.

    The peak is the range of ``unpatched``, its highest value less its lowest: latents have no
    other.
    """
    # On the CPU: with --gpu-only they may be on a device that has no float64.
    result, unpatched = result.cpu().double(), unpatched.cpu().double()
    if torch.equal(result, unpatched):
        return math.inf
    error = (result - unpatched).square().mean()
    return float(10 * torch.log10((unpatched.max() - unpatched.min()).square() / error))


def _describe_speed(unpatched: TwoResults, patched: TwoResults, difference: str) -> list[str]:
    """A verdict and the mean step; the median would hide a node that acts in a few steps only.

    Equal latents come of equal work, whose times differ by chance.
    """
    equal = _explain_equal(unpatched, patched) if difference == IDENTICAL else ""
    if not all(run.seconds for run in (*unpatched, *patched)):
        return [equal or "Speed was not measured: no step was computed"]
    before, after = ([fmean(run.seconds) for run in runs] for runs in (unpatched, patched))
    speedups = [one / other for one, other in zip(before, after, strict=True)]
    lowest, highest = min(speedups), max(speedups)
    seconds = f"unpatched {fmean(before):.3g} s, patched {fmean(after):.3g} s"
    lines = [f"Seconds per step: {seconds}"]
    if equal:
        return [equal, *lines]
    speed = f"{fmean(before) / fmean(after):.2f}x"
    if highest > STEADY * lowest:
        lines.insert(0, "The two rounds do not agree: was the machine busy with something else?")
    if lowest > 1 + CLEAR:
        speed += " faster"
    elif highest >= 1 - CLEAR:
        speed += ", no clear difference"
    else:
        speed += ", slower"
    verdict = f"{speed} ({lowest:.2f} to {highest:.2f}), {difference.removeprefix('PSNR ')}"
    return [verdict, *lines]


def _explain_equal(unpatched: TwoResults, patched: TwoResults) -> str:
    """Why both models gave the same latent."""
    if unpatched[-1].lines:
        return (
            "The latents are identical: the input model has our nodes, too. Connect the unpatched "
            "model to it"
        )
    if patched[-1].lines:
        return "Nothing was reduced: the latents are identical"
    return "The latents are identical: patched_model is not patched, or its patch has no effect"


def _describe_difference(unpatched: TwoResults, patched: TwoResults) -> str:
    before, after = (split_streams(runs[0].latent["samples"]) for runs in (unpatched, patched))
    if [each.shape for each in before] != [each.shape for each in after]:
        return "not comparable, the sizes differ"
    if all(map(torch.equal, before, after)):
        return IDENTICAL
    return " and ".join(map(_describe_psnr, after, before))


def _describe_psnr(result: Tensor, unpatched: Tensor) -> str:
    psnr = measure_psnr(result, unpatched)
    if math.isnan(psnr):
        return "not comparable, some values are not numbers"
    if psnr == math.inf:
        return "identical"
    most = max(unpatched.abs().max(), result.abs().max())
    if unpatched.max() - unpatched.min() <= CONSTANT * most:
        return "no PSNR, all values of the unpatched model's latent are equal but for rounding"
    words = next((each for least, each in IN_WORDS.items() if psnr >= least), IN_WORDS[0])
    return f"PSNR {psnr:.1f} dB ({words})"


def _describe_memory(unpatched: TwoResults, patched: TwoResults) -> str:
    before, after = (
        max((run.peak_memory for run in runs if run.peak_memory is not None), default=None)
        for runs in (unpatched, patched)
    )
    if before is None or after is None:
        return "unpatched -, patched -, not measured on this device"
    sizes = f"unpatched {before / 2**30:.2f} GiB, patched {after / 2**30:.2f} GiB"
    return f"{sizes}, {after / before:.0%}"


def _describe_nodes(unpatched: TwoResults, patched: TwoResults) -> list[str]:
    absent = "patched_model: has none of the nodes of this pack at work"
    return [
        *([f"{name}: {text}" for name, text in patched[-1].lines] or [absent]),
        *(f"{name} on the unpatched model: {text}" for name, text in unpatched[-1].lines),
    ]


def _name_model(model: ModelPatcher) -> str:
    return f"{type(model.model).__name__}, {str(model.model_dtype()).removeprefix('torch.')}"


def _describe_latent(sampling: Sampling) -> str:
    """The latent's size, which is (B, C, H, W) or (B, C, F, H, W)."""
    streams = split_streams(sampling.latent_image["samples"])
    text = " and ".join(" x ".join(map(str, stream.shape)) for stream in streams)
    return text + (", with a mask" if "noise_mask" in sampling.latent_image else "")


def _name_device(device: torch.device) -> str:
    name = get_torch_device_name(device)
    if device.type != "cpu":
        return name
    processor = platform.processor() or platform.machine()
    return f"{name} ({processor}, threads: {torch.get_num_threads()})"


def _find_version() -> str:
    """The version of this pack, read from the file by which it is published."""
    text = (PACK / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.+)"$', text, re.MULTILINE)
    return found[1] if found else "unknown"
