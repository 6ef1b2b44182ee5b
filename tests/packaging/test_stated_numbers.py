"""Numbers in sentences of the documents are those that were measured, or those of the code.

Numbers in tables are compared by the tests of what has them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from support.layers import share_read
from token_merge.nodes import NODES
from token_merge.nodes.comparison.report import IN_WORDS
from token_merge.nodes.comparison.run import WARM_UP_STEPS
from token_merge.nodes.hooks.transformer.attention import LOCAL_WINDOW
from token_merge.nodes.kernels.kernel_table import MOST_HEAD_CHANNELS
from token_merge.tome_core import DownsampleSettings, MergeSettings, Stream, TokenGrid
from token_merge.tome_core.attention.key_weights import count_channels
from token_merge.tome_core.constants import STORE
from token_merge.tome_core.downsampling.settings import MAX_FACTOR
from token_merge.tome_core.layer import PAIR_TIMES
from token_merge.tome_core.merging.local_matching import CELLS_PER_SIDE
from token_merge.tome_core.merging.planning import LEAST_SHARE, LEAST_TOKENS
from token_merge.tome_core.schedule import EARLY, LONG_STEP
from token_merge.tome_core.windows.geometry import fit_axes
from token_merge.tome_core.windows.near_and_far_keys import ELSEWHERE, list_key_sets
from token_merge.tome_core.windows.plan import make_geometry
from token_merge.tome_core.windows.planning import QUERIES_AT_ONCE

from benchmarks import intervals
from benchmarks.quality.equal_time import SHAPES as TRAINED
from benchmarks.quality.patches import ALL_STEPS, DOWNSAMPLE_BY_DEFAULT, MERGE_BY_DEFAULT
from benchmarks.quality.report import VariantReport
from benchmarks.settings import DOWNSAMPLE, MERGE, MERGE_QUERIES, share_early
from benchmarks.speed import documents
from benchmarks.speed.inputs import CUDA_CLIPS
from benchmarks.speed.results import Case
from benchmarks.speed.summary import compare
from devtools.options.soak import PARTS

ROOT = Path(__file__).parents[2]
RESULTS = documents.read_results()
GPU, PROCESSOR = (RESULTS[name] for name in (documents.GPU, documents.PROCESSOR))
SHAPES = {shape.name: shape for shape in (*documents.UNETS, *documents.TRANSFORMERS)}
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"]
GAIN = 1.1
"""With a smaller speed-up the README does not say that a node helps."""
HYPERTILE = "ComfyUI's HyperTile"
WIDE, CPU = TokenGrid(64, 64), torch.device("cpu")
AXES = fit_axes(WIDE, LOCAL_WINDOW)

Stated = tuple[list[str], str, list[Any]]
"""Pages, a sentence that all of them have, and what stands in its braces."""


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


def find_decibels(variant: VariantReport) -> float:
    return intervals.mean(variant.decibels).mean


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


def list_of_readme() -> Iterator[Stated]:
    page = ["README.md"]
    side, small = list_sides("SD 1.5", gains=True)[0], list_sides("SDXL", gains=False)
    assert small == list_sides("Flux", gains=False)
    wide = list_sides("Flux", gains=True)[0]
    helps = "with pictures from about {} × {}, and with SD 1.5 from {} × {}."
    yield page, helps, [wide, wide, side, side]
    yield page, "pictures of {} × {} and less on Flux, SDXL and similar models", small * 2
    yield page, "It does not help SD 1.5 below {} × {} on a fast GPU", [side] * 2
    yield page, "the first {} % of the schedule unpatched", [EARLY_PERCENT]
    yield page, "(`exact_early_steps`: {} of 8 steps, {} of 4)", count_early(8, 4)
    of_wan = tell("Wan 1280×720", "one reduced step")
    yield page, "the block of Wan at 1280 × 720 gains {}.", [of_wan]
    (flux,) = (clip for clip in CUDA_CLIPS if clip.name == "flux-2048")
    share = f"{share_read(flux.stream):.0%}"
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


def list_of_help() -> Iterator[Stated]:
    """Translations of an input are compared with its tooltip elsewhere."""
    names = ["TokenDownsample", "TokenMerge", "TokenDownsampleAdvanced", "TokenMergeAdvanced"]
    english, chinese, korean = (
        [f"web/docs/{name}{language}.md" for name in names] for language in ("", "/zh", "/ko")
    )
    downsample, merge = ([page, f"{page[:-3]}Advanced.md"] for page in english[:2])
    early, side = [EARLY_PERCENT], LOCAL_WINDOW
    yield [*english, "tooltips"], "computes the first {}% of the sampling schedule", early
    yield chinese, "采样过程的前 {}% 由原模型计算", early
    yield korean, "샘플링 과정의 처음 {}%는 원본 모델로 실행합니다", early
    steps = count_early(4, 8, 20)
    yield english, "they are {} of 4 steps, {} of 8 and {} of 20.", steps
    yield chinese, "4 步中的 {} 步、8 步中的 {} 步、20 步中的 {} 步", steps
    yield korean, "4스텝 중 {}스텝, 8스텝 중 {}스텝, 20스텝 중 {}스텝", steps
    yield english[2:], "A `start_percent` below {} then acts as {}", [EARLY] * 2
    yield [*downsample, "tooltips"], "about 1 of {} keys elsewhere", [FAR]
    last = [side, LAST, LAST]
    yield downsample, "with a window of {}, a `factor` above {} reads as many keys as {}.", last
    yield ["tooltips"], "with {}, a factor above {} reads as many as {})", last
    yield downsample, '"auto": {} on transformers', [side]
    yield ["tooltips"], "auto: {} on transformers", [side]
    yield english[3:], "and one of {} elsewhere", [FAR]
    yield english[3:], '"auto" is {}.', [side]
    yield ["tooltips"], "auto: {}. off:", [side]
    most = 1 - 1 / (MergeSettings.stride_x * MergeSettings.stride_y)
    yield merge, "ratio below {} changes nothing", [LEAST_SHARE]
    yield merge[:1], "A ratio above {} acts as {}", [most] * 2
    yield merge[1:], "{} with strides of 2", [most]
    yield ["tooltips"], "below {} it changes nothing, and above {} it acts as {}.", [
        LEAST_SHARE, most, most,
    ]  # fmt: skip
    around = CELLS_PER_SIDE + 2
    yield merge[1:], "at most {} × {}, so its cost", [around] * 2
    pages = [f"web/docs/TokenMerge{language}.md" for language in ("", "/zh", "/ko")]
    said = "fewer than {} tokens", "不足 {} 个 token", "{}개보다 적은 레이어"
    for one, sentence in zip(pages, said, strict=True):
        yield [one], sentence, [LEAST_TOKENS]


def list_of_comparison() -> Iterator[Stated]:
    pages = [f"web/docs/TokenReductionCompare{language}.md" for language in ("", "/zh", "/ko")]
    said = "a warm-up of up to {} steps", "预热最多 {} 步", "최대 {}스텝을 예열"
    for page, sentence in zip(pages, said, strict=True):
        yield [page], sentence, [WARM_UP_STEPS]
    (alike, hard), (small, words) = list(IN_WORDS.items())[:2]
    values = [alike, hard, small, words]
    yield pages[:1], 'from {} on, the report says "{}"; from {} on, "{}"', values
    yield pages[1:2], '{} 以上，报告称为难以分辨（"{}"）；{} 以上，称为差别很小（"{}"）', values
    said_in_korean = '{} 이상이면 보고서에 구별하기 어렵다("{}")고, {} 이상이면 차이가 작다("{}")고'
    yield pages[2:], said_in_korean, values


def list_of_notes() -> Iterator[Stated]:
    of_flux, of_z_image, of_unet, of_wan = (
        f"workflows/Faster {name} with Token Downsample.json"
        for name in (
            "Flux at 1920x1088",
            "Z-Image Turbo at 1536x1536",
            "SD 1.5 at 1024x1024",
            "Wan 2.2 video in 4 steps",
        )
    )
    small, side = list_sides("Flux", gains=False), list_sides("SD 1.5", gains=True)[0]
    yield [of_flux], "At {} x {} and below, fewer `steps` are the better way", small * 2
    yield [of_unet], "little is gained below {} x {} on a fast GPU", [side] * 2
    pages = [of_flux, of_z_image, of_unet, of_wan]
    yield pages, "`factor` at {:g}", [DownsampleSettings.factor]


STATED = [
    *list_of_readme(),
    *list_of_speed(),
    *list_of_reliability(),
    *list_of_models(),
    *list_of_help(),
    *list_of_comparison(),
    *list_of_notes(),
]


def read_flat(page: str) -> str:
    """A page without its ends of lines; "tooltips" are those of the nodes."""
    if page == "tooltips":
        inputs = (item for node in NODES for item in node.GET_SCHEMA().inputs)
        return " ".join(item.tooltip or "" for item in inputs)
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(("pages", "sentence", "values"), STATED, ids=[one[1] for one in STATED])
def test_a_sentence_has_the_numbers_of_the_results_and_of_the_code(
    pages: list[str], sentence: str, values: list[Any]
) -> None:
    for page in pages:
        assert sentence.format(*values) in read_flat(page), page


NUMBER = re.compile(
    r"[\d.,]*\d ?(?:%|x\b(?! \d)|(?:dB|m?s|[KMG]i?B|T?FLOPS|seconds|minutes|hours|times|kernels|"
    r"graphs|instructions|tests|cases|rounds|runs|prompts)\b|秒|分贝|초)"
)
"""It looks measured."""
TABLES = {
    *(table.title for table in documents.TABLES),
    "NVIDIA H200, against FlashAttention 2",
    "local windows",
    "graphs in one call",
}
"""The first columns of tables that tests compare with what they are made of."""
OTHER_TESTS = (
    r"\d+ to \d+ % of the unpatched model's",
    r"by [\d.]+ %, and rounding queries and keys to INT8 changes them by [\d.]+ %",
    r"\(docs/images/demo\.jpg\).*?(?= - \*\*It helps)",
    r"## What the demo prints.*?(?= ## |$)",
)
"""Numbers of these are compared by ``tests/benchmarks/test_speed_documents.py`` and by
``tests/nodes/test_triton_int8.py``, or are what the demo printed."""
PAGES = ["README.md", "CHANGELOG.md", "tooltips"]
PAGES += [f"docs/{name}.md" for name in ("design", "models", "reliability", "speed", "tried")]
PAGES += [page.relative_to(ROOT).as_posix() for page in (ROOT / "web" / "docs").rglob("*.md")]
PAGES += [page.relative_to(ROOT).as_posix() for page in (ROOT / "workflows").glob("*.json")]


def list_unchecked(page: str) -> list[str]:
    text = read_flat(page) if page == "tooltips" else (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".json"):
        notes = (node for node in json.loads(text)["nodes"] if node["type"] == "MarkdownNote")
        text = "".join(note["widgets_values"][0] for note in notes)
    for title in TABLES:
        text = re.sub(rf"^\| {re.escape(title)} \|.*\n(\|.*\n)*", "", text, flags=re.MULTILINE)
    text = " ".join(text.split())
    for pages, sentence, values in STATED:
        if page in pages:
            text = text.replace(sentence.format(*values), "")
    for pattern in OTHER_TESTS:
        text = re.sub(pattern, "", text)
    return NUMBER.findall(text)


@pytest.mark.parametrize("page", PAGES)
def test_no_other_number_looks_measured(page: str) -> None:
    assert list_unchecked(page) == []


REDUCED = f"Token Downsample ×2, {ALL_STEPS}"
LARGER_ERRORS = [
    (DOWNSAMPLE_BY_DEFAULT, "Token Downsample ×4", ["unet", "flux", "flux-4-steps", "wan"]),
    (DOWNSAMPLE_BY_DEFAULT, REDUCED, ["flux", "flux-4-steps", "wan"]),
    (DOWNSAMPLE_BY_DEFAULT, "Token Downsample ×2, stratified", ["unet"]),
    (REDUCED, "Token Downsample ×2, no local windows", ["flux", "flux-4-steps", "wan"]),
    (DOWNSAMPLE_BY_DEFAULT, MERGE_BY_DEFAULT, ["unet", "flux", "flux-4-steps", "wan"]),
]


@pytest.mark.parametrize(("better", "worse", "models"), LARGER_ERRORS)
def test_what_the_help_says_of_errors_was_measured(
    better: str, worse: str, models: list[str]
) -> None:
    """If the picture changes too much: the defaults, and Token Downsample."""
    for trained in models:
        both = [
            find_decibels(found[better]) - find_decibels(found[worse])
            for found in list_variants(trained)
            if {better, worse} <= found.keys()
        ]
        assert fmean(both) > 0, trained
