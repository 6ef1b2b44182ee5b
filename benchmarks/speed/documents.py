"""The tables of README.md and docs/speed.md, out of what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from token_merge.tome_core.layer import LEAST_FLOPS

from .. import markdown
from ..settings import DOWNSAMPLE, MERGE, MERGE_ALL, MERGE_QUERIES, share_early
from .results import Case, Results
from .summary import Row, compare
from .windows import WINDOWS_2, WINDOWS_4, WINDOWS_MERGE

RESULTS = Path(__file__).absolute().parent / "results"
GPU, PROCESSOR = "nvidia-h200", "amd-epyc"


@dataclass(frozen=True)
class Shape:
    """A case of the benchmark. model: how its name begins. channels: of a token, where attention
    is largest.
    """

    name: str
    model: str
    height: int
    width: int
    channels: int

    def find(self, part: str, cases: Sequence[Case]) -> Case | None:
        wanted = part, self.height, self.width
        for case in cases:
            if (case.part, case.height, case.width) == wanted and case.model.startswith(self.model):
                return case
        return None


@dataclass(frozen=True)
class Line:
    """A row of a table: the variant of the benchmark. kind: what must pay for our node to reduce
    tokens on a GPU; empty where nothing is asked. exact: a share of the steps that is not reduced.
    """

    name: str
    variant: str
    setting: str | None
    kind: str = ""
    exact: float = 0.0

    def find(self, case: Case) -> Row | None:
        found = [
            row
            for row in compare(case)
            if (row.measured.name, row.measured.setting) == (self.variant, self.setting)
        ]
        return found[0] if found else None


@dataclass(frozen=True)
class Table:
    """title: of the first column, which no other table in the document has."""

    title: str
    machine: str
    part: str
    shapes: Sequence[Shape]
    lines: Sequence[Line]

    def write(self, results: Mapping[str, Results]) -> str:
        measured = results[self.machine].cases
        cases = [(shape, shape.find(self.part, measured)) for shape in self.shapes]
        on_gpu = self.machine == GPU
        rows = [
            ["unpatched", *(_tell_seconds(case) for _, case in cases)],
            *([line.name, *(tell(line, *one, on_gpu) for one in cases)] for line in self.lines),
        ]
        return markdown.write_table([self.title, *(shape.name for shape in self.shapes)], rows)


def tell(line: Line, shape: Shape, case: Case | None, on_gpu: bool) -> str:
    """The speed-up; empty: it was not measured."""
    row = line.find(case) if case else None
    if row is None or case is None:
        return ""
    if on_gpu and not pays(line, shape, case):
        return "not reduced"
    return f"{1 / (line.exact + (1 - line.exact) / row.speedup.median):.2f}x"


def pays(line: Line, shape: Shape, case: Case) -> bool:
    """Whether the node reduces tokens there on a GPU as fast as an H100."""
    lengths = next(one.lengths for one in case.measured if one.kind == "unpatched")
    queries, keys, _ = lengths[0]
    return 4 * queries * keys * shape.channels >= LEAST_FLOPS.get(line.kind, 0.0)


def _tell_seconds(case: Case | None) -> str:
    row = Line("", "unpatched", None).find(case) if case else None
    if row is None:
        return ""
    if row.seconds >= 1:
        return f"{row.seconds:.1f} s"
    return f"{1000 * row.seconds:.{1 if row.seconds < 0.01 else 0}f} ms"


UNETS = (
    *(Shape(f"SD 1.5 {side}²", "SD 1.5", side, side, 320) for side in (512, 768, 1024, 1536)),
    *(Shape(f"SDXL {side}²", "SDXL", side, side, 640) for side in (1024, 2048)),
)
TRANSFORMERS = (
    *(Shape(f"Flux {side}²", "Flux", side, side, 3072) for side in (1024, 1536, 2048)),
    Shape("Wan 832×480", "Wan", 480, 832, 1536),
    Shape("Wan 1280×720", "Wan", 720, 1280, 1536),
)

DOWNSAMPLING, MERGING = "Token Downsample ×2 (the default)", "Token Merge 0.2 (the default)"
OF_UNETS = (
    Line(DOWNSAMPLING, "ours, interleaved", DOWNSAMPLE.name, "downsampling"),
    Line("its limit", "limit", DOWNSAMPLE.name),
    Line("the same by ToDo's code", "ToDo", DOWNSAMPLE.name),
    Line(MERGING, "ours", MERGE.name, "merging"),
    Line("its limit", "limit", MERGE.name),
    Line("Token Merge 0.5, all targets", "ours", MERGE_ALL.name, "merging"),
    Line("the same merging by tomesd", "tomesd", MERGE_ALL.name),
    Line("Token Merge 0.5, queries", "ours", MERGE_QUERIES.name, "merging"),
    Line("the same by TomePatchModel", "TomePatchModel", MERGE_QUERIES.name),
    Line("ComfyUI's HyperTile", "ComfyUI's HyperTile", None),
)
EXACT_STEPS = share_early(8)
"""Of 8 steps on a transformer, by default."""
OF_TRANSFORMERS = (
    Line(DOWNSAMPLING, "ours", WINDOWS_2.name, "downsampling", EXACT_STEPS),
    Line("one reduced step", "ours", WINDOWS_2.name, "downsampling"),
    Line("limit of one reduced step", "limit", WINDOWS_2.name),
    Line("Token Downsample ×4, a reduced step", "ours", WINDOWS_4.name, "downsampling"),
    Line(MERGING, "ours", WINDOWS_MERGE.name, "merging", EXACT_STEPS),
    Line("one reduced step", "ours", WINDOWS_MERGE.name, "merging"),
    Line("limit of one reduced step", "limit", WINDOWS_MERGE.name),
)
TABLES = (
    Table("GPU, whole UNets", GPU, "unet", UNETS, OF_UNETS),
    Table("GPU, blocks of transformers", GPU, "transformer", TRANSFORMERS, OF_TRANSFORMERS),
    Table("Processor, whole UNets", PROCESSOR, "unet", UNETS[:3], OF_UNETS),
)
"""Of docs/speed.md."""

IN_README = (
    ("Wan 1.3B, 81 frames of 1280 × 720, one of 30 blocks", "transformer", TRANSFORMERS[4]),
    ("Wan 1.3B, 81 frames of 832 × 480, one of 30 blocks", "transformer", TRANSFORMERS[3]),
    ("Flux, 2048 × 2048, two of 57 blocks", "transformer", TRANSFORMERS[2]),
    ("Flux, 1536 × 1536, two of 57 blocks", "transformer", TRANSFORMERS[1]),
    ("Flux, 1024 × 1024, two of 57 blocks", "transformer", TRANSFORMERS[0]),
    ("SDXL, 2048 × 2048, the whole model", "unet", UNETS[5]),
    ("SD 1.5, 1536 × 1536, the whole model", "unet", UNETS[3]),
    ("SD 1.5, 1024 × 1024, the whole model", "unet", UNETS[2]),
)


def write_readme_table(results: Mapping[str, Results]) -> str:
    """Video first; the two nodes with their defaults, in a sampling of 8 steps."""
    rows = []
    for name, part, shape in IN_README:
        lines = OF_UNETS if part == "unet" else OF_TRANSFORMERS
        of_nodes = [line for line in lines if line.name in (DOWNSAMPLING, MERGING)]
        case = shape.find(part, results[GPU].cases)
        rows.append([name, *(tell(line, shape, case, on_gpu=True) for line in of_nodes)])
    columns = ["NVIDIA H200, against FlashAttention 2", "Token Downsample", "Token Merge"]
    return markdown.write_table(columns, rows)


def read_results() -> dict[str, Results]:
    return {name: Results.read(RESULTS / name) for name in (GPU, PROCESSOR)}


def write(root: Path) -> None:
    """Put the tables in place of those in the documents. root: of the repository."""
    results = read_results()
    for name, tables in (
        ("README.md", [write_readme_table(results)]),
        ("docs/speed.md", [table.write(results) for table in TABLES]),
    ):
        document = root / name
        text = document.read_text(encoding="utf-8")
        for table in tables:
            text = markdown.replace_table(text, table, known_by=1)
        document.write_text(text, encoding="utf-8")
