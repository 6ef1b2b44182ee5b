"""What README, the changelog and docs say."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import torch
from token_merge.nodes.hooks.transformer.attention import LOCAL_WINDOW
from token_merge.nodes.kernels.kernel_table import MOST_HEAD_CHANNELS
from token_merge.tome_core import MergeSettings, TokenGrid
from token_merge.tome_core.attention.key_weights import count_channels
from token_merge.tome_core.downsampling.settings import MAX_FACTOR
from token_merge.tome_core.layer import PAIR_TIMES
from token_merge.tome_core.schedule import LONG_STEP
from token_merge.tome_core.windows.geometry import fit_axes
from token_merge.tome_core.windows.near_and_far_keys import list_key_sets
from token_merge.tome_core.windows.planning import QUERIES_AT_ONCE

from benchmarks.quality.patches import DOWNSAMPLE_BY_DEFAULT
from benchmarks.speed import documents
from devtools.options.soak import PARTS
from support.share_read import share_read

from .numbers import (
    AXES,
    EARLY_PERCENT,
    FAR,
    GPU,
    HYPERTILE,
    LARGE,
    LAST,
    PROCESSOR,
    STORED,
    WIDE,
    WORDS,
    count_blocks,
    count_early,
    count_in_line,
    count_rounds,
    find_case,
    find_clip,
    find_decibels,
    find_least_that_gains_as_graph,
    find_peak_with_queries_merged,
    find_torch,
    list_sides,
    list_variants,
    list_won_by_hypertile,
    read_constant,
    tell,
)

Stated = tuple[list[str], str, list[Any]]
"""Pages, a sentence that all of them have, and what stands in its braces."""


def list_sentences() -> Iterator[Stated]:
    """Of all of them."""
    yield from list_of_readme()
    yield from list_of_speed()
    yield from list_of_reliability()
    yield from list_of_models()


def list_of_readme() -> Iterator[Stated]:
    page = ["README.md"]
    side, small = list_sides("SD 1.5", gains=True)[0], list_sides("SDXL", gains=False)
    assert small == list_sides("Flux", gains=False)
    wide = list_sides("Flux", gains=True)[0]
    helps = "with pictures from about {} × {}, and with SD 1.5 from {} × {}."
    yield page, helps, [wide, wide, side, side]
    yield page, "pictures of {} × {} and less on Flux, SDXL and similar models", small * 2
    yield page, "It does not help SD 1.5 below {} × {} on a fast GPU", [side] * 2
    yield page, "the first {} % of the schedule stays unpatched", [EARLY_PERCENT]
    yield page, "(`exact_early_steps`): {} of 8 steps, {} of 4.", count_early(8, 4)
    of_wan = tell("Wan 1280×720", "one reduced step")
    yield page, "A reduced step alone is faster: {} for the block of Wan at 1280 × 720.", [of_wan]
    share = f"{share_read(find_clip(LARGE[0]).stream):.0%}"
    yield page, "*Reads {} of the pairs in 57 of 57 layers, local windows*", [share]
    (found,) = list_variants("flux-4-steps")
    both = [found[name] for name in (DOWNSAMPLE_BY_DEFAULT, "unpatched, 3 steps")]
    decibels = [f"{find_decibels(each):.1f}" for each in both]
    yield page, "changes the picture less ({} dB) than one step fewer ({} dB)", decibels


def list_of_speed() -> Iterator[Stated]:
    page = ["docs/speed.md"]
    of_gpu = [GPU.machine["accelerator"], find_torch(GPU.machine)]
    yield page, "One {} with torch {} and PyTorch's attention", of_gpu
    yield page, "prompt and negative prompt in one call, in {}.", [find_case("SD 1.5 512²").dtype]
    yield page, "8 steps, of which the first {} are not reduced", [WORDS[count_early(8)[0]]]
    yield page, "of Wan 1.3B one of 30, with {} frames", [find_case("Wan 832×480").frames]
    yield page, "even {}² gains.", [find_least_that_gains_as_graph()]
    nodes = [documents.DOWNSAMPLING, documents.MERGING]
    sides = list_won_by_hypertile(documents.GPU, nodes)
    yield page, "is faster than both nodes on SD 1.5 from {}² on", [sides[0]]
    assert sides == [shape.height for shape in documents.UNETS[1:4]]
    yield page, "our kernel {} for a pair of a window", [PAIR_TIMES["our kernel"]]
    yield page, "Windows in INT8 count as {},", [PAIR_TIMES["our kernel in INT8"]]
    machine, dtype = PROCESSOR.machine, PROCESSOR.cases[0].dtype
    with_torch = machine["processor"], dtype, find_torch(machine)
    said = "{} cores of an {}, {}, torch {}, one row"
    yield page, said, [WORDS[machine["cores"]].capitalize(), *with_torch]
    rounds = [count_rounds(shape.name) for shape in documents.UNETS[:3]]
    yield page, "{} rounds at 512², {} at 768², {} at 1024².", rounds
    others = {line.name for line in documents.OF_UNETS} - {"its limit", HYPERTILE}
    sides = list_won_by_hypertile(documents.PROCESSOR, sorted(others))
    yield page, "HyperTile is the fastest at {}² and {}².", sides
    blocks = count_blocks("SDXL 1024²")
    yield page, "our nodes act on {} of its {} blocks, those with {} tokens", [*blocks]
    more = f"{find_peak_with_queries_merged() - 100:.0f}"
    yield page, "with queries alone merged up to {} % more", [more]


def list_of_reliability() -> Iterator[Stated]:
    page = ["docs/reliability.md"]
    same = read_constant("nodes/test_same_picture.py", "BESIDE_UNPATCHED")
    yield page, "The test allows {} times the difference", [WORDS[round(same)]]
    bound = read_constant("nodes/test_rounding.py", "BOUND")
    yield page, "against float64 is at most {} times that of the unpatched model's", [bound]
    larger = sqrt(count_channels(40) / 40)
    largest = torch.finfo(torch.float16).max / larger // 1000
    yield page, "queries beyond {:.0f},000 in fp16", [largest]
    yield page, "multiplied by up to {:.1f} with heads of 40 channels", [larger]
    for name, part in PARTS.items():
        yield page, f"| `{name}` | {{:,}} |", [part.cases]
    most = read_constant("server/test_queue.py", "MOST")
    yield page, "it may be {:.0f} % above that in the earlier half", [100 * most - 100]
    pages = ["docs/design.md", *page]
    yield pages, "{} MiB in all, or what the last {} calls of a model need", STORED
    yield pages[:1], "a step more than {} times as long as the one before", [LONG_STEP]


def list_of_models() -> Iterator[Stated]:
    page, side = ["docs/models.md"], LOCAL_WINDOW
    yield page, "the first {} % of the schedule, unless", [EARLY_PERCENT]
    margin = (AXES[1].box - AXES[1].tile) // 2
    yield page, "a margin of a sixth of the window's side ({} with {})", [margin, side]
    few = list_key_sets(AXES, 1.5, 1.0)[-1].one_of
    yield page, "of all others one of {}. With a `factor` below 2", [FAR]
    yield page, "it reads more of these: one of {} with 1.5.", [WORDS[round(few)]]
    least = count_in_line(MAX_FACTOR)
    yield page, "at least {} of {} keys, however large `factor` is", [least, side]
    yield page, "a `factor` above {} acts as {}.", [LAST] * 2
    frames = fit_axes(TokenGrid(64, 64, 21), side)[0].box
    yield page, "({} frames of the latent with {})", [frames, side]
    yield page, "with up to {} channels of a head", [MOST_HEAD_CHANNELS]
    yield page, "these kernels compute {} queries at once", [QUERIES_AT_ONCE["cuda"]]
    merged = fit_axes(WIDE, side, kept_share=1 - MergeSettings.ratio)
    rows = [merged[1].tile, merged[2].tile, MergeSettings.ratio]
    yield page, "about {} rows of {} queries with `ratio` {}.", rows
    yield page, "with strides of 2, and 1 of {} elsewhere", [FAR]
    yield ["CHANGELOG.md"], "so does the first {} % of the schedule", [EARLY_PERCENT]
