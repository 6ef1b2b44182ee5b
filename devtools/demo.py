"""``python -m devtools demo``: the unpatched model, each node and fewer steps, side by side.

Sampling is timed as a whole, since our nodes leave early steps as they are. The variants take turns
within a round, so that whatever else the machine does falls on all of them alike. The first round
warms up and is not counted. Every round has another seed, which all variants of the round share:
ComfyUI would not sample again for a seed it has just done.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from PIL import Image
from rich.console import Console
from rich.table import Table

from . import cache, graph, picture
from .client import Client, Prompt, RunError
from .options.demo import DEFAULT_PIXELS, DEFAULT_STEPS, parse
from .progress import Progress
from .server import Server, ServerError, link, running

FIRST_SEED = 42
DEMO_MODEL = "flux-4-steps"
DEMO_PROMPT = "a hamburger on a purple gradient"
GUIDANCE = 1.0
GAIN = 8
"""Differences are drawn so many times as strong."""
WARM_UP_STEPS = 2
"""Enough for a step that is not early."""
SHOWN_PIXELS = 480
"""A picture on the sheet is at least so wide; its label takes that much."""

# The attention that ComfyUI takes on GPUs by default. On a CPU its default is slower, which would
# flatter whatever shortens attention.
ATTENTION = "--use-pytorch-cross-attention"


@dataclass
class TimedVariant:
    """One graph and what its counted rounds gave."""

    name: str
    prompt: Prompt
    rounds: list[float] = field(default_factory=list)  # seconds of sampling with all steps
    image: Image.Image | None = None  # of the last round
    share: float = 1.0  # of the steps

    def seconds(self) -> float:
        """The median over all counted rounds."""
        return self.share * median(self.rounds)

    def speedups(self, unpatched: TimedVariant) -> list[float]:
        """How many times as fast as ``unpatched``, for each round."""
        pairs = zip(unpatched.rounds, self.rounds, strict=True)
        return [theirs / (self.share * ours) for theirs, ours in pairs]


def main(arguments: list[str]) -> int:
    """Run the demo; the exit code is 0 where every picture was made."""
    options = parse(arguments)
    console = Console()
    runs = cache.folder() / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=runs, prefix="demo-") as base:
            if options.checkpoint:
                _link_checkpoint(options.checkpoint, Path(base))
            with running(Path(base), [ATTENTION]) as server:
                variants = _measure(server, options)
    except (ServerError, RunError) as error:
        console.print(f"[bold red]The demo failed.[/] {error}", highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted")
        return 130
    console.print(_table(variants))
    _save(variants, options.out)
    console.print(f"Side by side: {options.out}", soft_wrap=True)
    return 0


def _link_checkpoint(checkpoint: Path, base: Path) -> None:
    link(base / "models" / "checkpoints" / checkpoint.name, checkpoint)


def _measure(server: Server, options: argparse.Namespace) -> list[TimedVariant]:
    """Run all rounds and return the variants, the unpatched one first."""
    client = Client(server)
    with Progress("Reading the workflows"):
        variants = _variants(client.object_info(), options)
    steps = variants[0].prompt[_sampler(variants[0].prompt)]["inputs"]["steps"]
    done, total = count(1), (WARM_UP_STEPS + options.rounds * steps) * len(variants)
    with Progress("Sampling") as progress:
        for number in range(options.rounds + 1):
            for variant in variants:
                stage = f"Round {number} of {options.rounds}" if number else "Warm-up"
                progress.stage(f"{stage}, {variant.name}")
                prompt = graph.with_values(
                    variant.prompt,
                    "KSampler",
                    seed=FIRST_SEED + number,
                    steps=steps if number else WARM_UP_STEPS,
                )
                run = client.run(
                    prompt, on_step=lambda: progress.detail(f"step {next(done)} of {total} in all")
                )
                variant.image = run.images[0]
                if number:
                    variant.rounds.append(run.seconds[_sampler(prompt)])
        progress.stage("Fewer steps")
        seed = FIRST_SEED + options.rounds
        fewer = _take_fewer_steps(variants[0], variants[1], steps, seed)
        fewer.image = client.run(fewer.prompt).images[0]
    client.close()
    return [*variants, fewer]


def _take_fewer_steps(
    unpatched: TimedVariant, ours: TimedVariant, steps: int, seed: int
) -> TimedVariant:
    """The unpatched model with as many steps as take about the time of ``ours``."""
    fewer = count_fewer_steps(steps, median(ours.speedups(unpatched)))
    prompt = graph.with_values(unpatched.prompt, "KSampler", seed=seed, steps=fewer)
    name = f"{fewer} of {steps} steps"
    return TimedVariant(name, prompt, unpatched.rounds, share=fewer / steps)


def count_fewer_steps(steps: int, speedup: float) -> int:
    """So many of ``steps`` take about the time of all of them at this speed-up."""
    return max(1, min(steps - 1, round(steps / speedup)))


def _variants(object_info: dict[str, Any], options: argparse.Namespace) -> list[TimedVariant]:
    workflow = graph.load(graph.SD15)
    return [
        TimedVariant(name, _adapt(graph.to_prompt(each, object_info), options))
        for name, each in (
            ("Unpatched", graph.bypassed(workflow)),
            ("Token Downsample", graph.with_only(workflow, "TokenDownsample")),
            ("Token Merge", graph.with_only(workflow, "TokenMerge")),
        )
    ]


def _adapt(prompt: Prompt, options: argparse.Namespace) -> Prompt:
    """The workflow's graph with the model, the size and the steps asked for."""
    steps, size = options.steps, options.size
    if options.checkpoint:
        prompt = graph.with_values(prompt, graph.LOADER, ckpt_name=options.checkpoint.name)
    else:
        prompt = graph.with_trained_model(prompt, DEMO_PROMPT, DEMO_MODEL)
        prompt = graph.with_values(prompt, "KSampler", cfg=GUIDANCE, scheduler="simple")
        steps, size = steps or DEFAULT_STEPS, size or DEFAULT_PIXELS
    if steps:
        prompt = graph.with_values(prompt, "KSampler", steps=steps)
    if size:
        prompt = graph.with_values(prompt, "EmptyLatentImage", width=size, height=size)
    return prompt


def _sampler(prompt: Prompt) -> str:
    return next(key for key, node in prompt.items() if node["class_type"] == "KSampler")


def _table(variants: list[TimedVariant]) -> Table:
    unpatched = variants[0]
    rounds = f"{len(unpatched.rounds)} round" + "s" * (len(unpatched.rounds) > 1)
    table = Table(caption=f"{rounds}; medians (lowest to highest round)")
    table.add_column("")
    for heading in ("seconds", "speed", "PSNR", "mean difference"):
        table.add_column(heading, justify="right")
    for variant in variants:
        table.add_row(variant.name, *_figures(variant, unpatched))
    return table


def _figures(variant: TimedVariant, unpatched: TimedVariant) -> tuple[str, str, str, str]:
    seconds = f"{variant.seconds():.1f}"
    if variant is unpatched:
        return seconds, "1x", "", ""
    assert variant.image is not None
    assert unpatched.image is not None
    speedups = variant.speedups(unpatched)
    return (
        seconds,
        f"{unpatched.seconds() / variant.seconds():.2f}x "
        f"({min(speedups):.2f} to {max(speedups):.2f})",
        f"{picture.psnr(variant.image, unpatched.image):.1f} dB",
        f"{picture.mean_difference(variant.image, unpatched.image):.1f} of 255",
    )


def _save(variants: list[TimedVariant], place: Path) -> None:
    unpatched = variants[0]
    labels = []
    for variant in variants:
        seconds, speed, psnr, _ = _figures(variant, unpatched)
        told = f"{seconds} s"
        if variant is unpatched:
            told += f"; below: difference from this, times {GAIN}"
        else:
            told += f", {speed.split(' ')[0]}, PSNR {psnr}"
        labels.append(f"{variant.name}\n{told}")
    images = [variant.image for variant in variants if variant.image is not None]
    columns = [
        picture.tiled([image, picture.differences(image, images[0], GAIN)], 1) for image in images
    ]
    shown = [picture.enlarged(column, SHOWN_PIXELS) for column in columns]
    picture.save_side_by_side(shown, labels, place)
