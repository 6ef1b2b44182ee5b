"""Numbers as the results of benchmarks and the code have them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from token_merge.nodes.hooks.transformer.attention import LOCAL_WINDOW
from token_merge.tome_core import Stream, TokenGrid
from token_merge.tome_core.constants import STORE
from token_merge.tome_core.downsampling.settings import MAX_FACTOR
from token_merge.tome_core.schedule import EARLY
from token_merge.tome_core.windows.geometry import fit_axes
from token_merge.tome_core.windows.near_and_far_keys import ELSEWHERE, list_key_sets
from token_merge.tome_core.windows.plan import make_geometry

from benchmarks import intervals
from benchmarks.quality.equal_time import SHAPES as TRAINED
from benchmarks.quality.equal_time import Shape, list_rows
from benchmarks.quality.patches import ALL_STEPS, DOWNSAMPLE_BY_DEFAULT
from benchmarks.quality.report import VariantReport
from benchmarks.settings import DOWNSAMPLE, MERGE, MERGE_QUERIES, share_early
from benchmarks.speed import documents
from benchmarks.speed.inputs import CUDA_CLIPS, Clip
from benchmarks.speed.results import Case
from benchmarks.speed.summary import compare

ROOT = Path(__file__).parents[3]
RESULTS = documents.read_results()
GPU, PROCESSOR = (RESULTS[name] for name in (documents.GPU, documents.PROCESSOR))
SHAPES = {shape.name: shape for shape in (*documents.UNETS, *documents.TRANSFORMERS)}
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"]
GAIN = 1.1
"""With a smaller speed-up the README does not say that a node helps."""
HYPERTILE = "ComfyUI's HyperTile"
WIDE, CPU = TokenGrid(64, 64), torch.device("cpu")
AXES = fit_axes(WIDE, LOCAL_WINDOW)
WINDOWED = [each for each in TRAINED if each.trained in ("flux", "wan")]
LARGE = ["flux-2048", "wan-480p"]
"""The sizes of these in the tables of quality."""
ALL_REDUCED = f"Token Downsample ×2, {ALL_STEPS}"


def find_case(shape: str, machine: str = documents.GPU) -> Case:
    part = "unet" if SHAPES[shape] in documents.UNETS else "transformer"
    case = SHAPES[shape].find(part, RESULTS[machine].cases)
    assert case
    return case


def tell(shape: str, line: str, machine: str = documents.GPU) -> str:
    """What the first line of this name says in a table."""
    of_unet = SHAPES[shape] in documents.UNETS
    lines = documents.OF_UNETS if of_unet else documents.OF_TRANSFORMERS
    found = next(each for each in lines if each.name == line)
    on_gpu = machine == documents.GPU
    return documents.tell(found, SHAPES[shape], find_case(shape, machine), on_gpu)


def find_speed_up(shape: str, line: str, machine: str = documents.GPU) -> float:
    """1 where the node reduces nothing."""
    return float(tell(shape, line, machine).removesuffix("x").replace("not reduced", "1"))


def list_sides(model: str, gains: bool) -> list[int]:
    """Of the pictures that Token Downsample makes faster, or not."""
    found = {shape.height: name for name, shape in SHAPES.items() if shape.model == model}
    return [
        side
        for side, name in found.items()
        if (find_speed_up(name, documents.DOWNSAMPLING) >= GAIN) == gains
    ]


def list_won_by_hypertile(machine: str, lines: list[str]) -> list[int]:
    """Sides of the pictures of SD 1.5 with which it is faster than all of these."""
    return [
        case.height
        for case in sorted(RESULTS[machine].cases, key=lambda case: case.height)
        if (case.part, case.model) == ("unet", "SD 1.5")
        and find_speed_up(name := f"SD 1.5 {case.height}²", HYPERTILE, machine)
        > max(find_speed_up(name, line, machine) for line in lines)
    ]


def find_least_that_gains_as_graph() -> int:
    """The side of a picture of SD 1.5 that both nodes make faster in replayed CUDA graphs."""
    settings = (DOWNSAMPLE.name, MERGE.name)
    return min(
        case.height
        for case in GPU.cases
        if (case.part, case.model) == ("graph", "SD 1.5")
        and all(
            row.speedup.low > 1
            for row in compare(case)
            if row.measured.kind == "ours" and row.measured.setting in settings
        )
    )


def find_peak_with_queries_merged() -> float:
    """The most memory on the processor, in percent of the unpatched model's."""
    rows = [row for case in PROCESSOR.cases for row in compare(case)]
    of_queries = (row for row in rows if row.measured.setting == MERGE_QUERIES.name)
    return max(100 * (row.peak or 0) for row in of_queries if row.measured.kind == "ours")


def count_blocks(shape: str) -> tuple[int, int, str]:
    """Those that are reduced, all, and the tokens of those that are."""
    unpatched = next(one for one in find_case(shape).measured if one.kind == "unpatched")
    tokens, _, finest = unpatched.lengths[0]
    return finest, sum(calls for _, _, calls in unpatched.lengths), f"{tokens:,}"


def count_rounds(shape: str) -> str:
    return WORDS[len(find_case(shape, documents.PROCESSOR).measured[0].seconds)]


def find_torch(machine: dict[str, Any]) -> str:
    return ".".join(machine["torch"].split(".")[:2])


def list_variants(trained: str) -> list[dict[str, VariantReport]]:
    """By name, for each regime of the model."""
    reports = (shape.read_reports() for shape in TRAINED if shape.trained == trained)
    return [{one.name: one for one in each.variants} for of in reports for each in of.values()]


def count_pictures(found: dict[str, VariantReport]) -> int:
    """Or clips: so many were made of each variant."""
    (count,) = {len(variant.decibels) for variant in found.values()}
    return count


def find_decibels(variant: VariantReport) -> float:
    return intervals.mean(variant.decibels).mean


def find_gain(found: dict[str, VariantReport], better: str, worse: str) -> float:
    """Of the mean PSNR, in dB."""
    return find_decibels(found[better]) - find_decibels(found[worse])


def compare_pictures(found: dict[str, VariantReport], worse: str) -> intervals.Interval:
    """The gain of Token Downsample's defaults, picture by picture, in dB."""
    return intervals.paired(found[DOWNSAMPLE_BY_DEFAULT].decibels, found[worse].decibels)


def find_time(shape: Shape, name: str) -> float:
    """As a share of the unpatched model's, in the tables of quality."""
    case = shape.find_case(GPU.cases)
    assert case
    return next(row.time for row in list_rows(case, shape.read_reports()) if row.name == name)


def find_clip(name: str) -> Clip:
    return next(clip for clip in CUDA_CLIPS if clip.name == name)


def read_constant(file: str, name: str) -> float:
    """Of a test."""
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    return float(re.findall(rf"^{name} = (.*)$", text, re.MULTILINE)[0])


def count_early(*steps: int) -> list[int]:
    """Steps that stay exact by default, of so many each time."""
    return [round(share_early(each) * each) for each in steps]


def count_in_line(factor: float) -> int:
    """How many keys across a window are read in line with it."""
    sets = list_key_sets(AXES, factor, 1.0)
    in_line = make_geometry(Stream(WIDE), AXES, sets, CPU).of_picture[1]
    return round(LOCAL_WINDOW / in_line.weight)


def find_last_factor() -> float:
    """The first that reads as few keys of a picture as any."""
    factors = [each / 4 for each in range(4, int(4 * MAX_FACTOR) + 1)]
    return next(each for each in factors if count_in_line(each) == count_in_line(MAX_FACTOR))


FAR, LAST = f"{ELSEWHERE:.0f}", f"{find_last_factor():g}"
EARLY_PERCENT = f"{100 * EARLY:.0f}"
STORED = [STORE.most_bytes // 2**20, WORDS[STORE._starts.maxlen or 0]]
