"""Which setting has the smallest error in a given time.

The time of a call is that of a model at full width and real size (``bench``), the error that of a
small trained model. What takes a share of the calls takes that share of the time, and early steps
that stay exact take the unpatched model's time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import intervals, markdown
from ..settings import DOWNSAMPLE, MERGE, MERGE_ALL, MERGE_QUERIES, share_early
from ..speed.results import Case
from ..speed.summary import compare
from ..speed.windows import WINDOWS_2, WINDOWS_4, WINDOWS_MERGE
from .patches import ALL_STEPS, DOWNSAMPLE_BY_DEFAULT, MERGE_BY_DEFAULT
from .places import RESULTS
from .regimes import STANDARD, Regime
from .report import Report, VariantReport
from .yardsticks import CACHED, SHARES, name_cache, name_share

UNPATCHED = "unpatched"
_DOWNSAMPLE = (("ours, interleaved", DOWNSAMPLE.name), ("ours", WINDOWS_2.name))
OF_CALLS: dict[str, tuple[tuple[str, str | None], ...]] = {
    DOWNSAMPLE_BY_DEFAULT: _DOWNSAMPLE,
    f"Token Downsample ×2, {ALL_STEPS}": _DOWNSAMPLE,
    "Token Downsample ×2, stratified": (("ours, stratified", DOWNSAMPLE.name),),
    "Token Downsample ×2, no local windows": (("ours", DOWNSAMPLE.name),),
    "Token Downsample ×4": (("ours", WINDOWS_4.name),),
    MERGE_BY_DEFAULT: (("ours", MERGE.name), ("ours", WINDOWS_MERGE.name)),
    "Token Merge 0.5": (("ours", MERGE_ALL.name),),
    "ToDo ×2": (("ToDo", DOWNSAMPLE.name),),
    "tomesd 0.5": (("tomesd", MERGE_ALL.name),),
    "TomePatchModel 0.5": (("TomePatchModel", MERGE_QUERIES.name),),
    "ComfyUI's HyperTile": (("ComfyUI's HyperTile", None),),
}
"""For the name of a variant of pictures, this has the variants and settings under which ``bench``
has its calls; the last that was timed counts."""
EARLY_EXACT = (DOWNSAMPLE_BY_DEFAULT, "Token Downsample ×4", MERGE_BY_DEFAULT)
"""On transformers, early steps stay exact with these."""


@dataclass(frozen=True)
class Shape:
    """part, model, height, width: of the case of ``bench``; ``model`` is how its name begins.
    trained: the model that has the errors.
    """

    name: str
    part: str
    model: str
    height: int
    width: int
    trained: str

    @property
    def regimes(self) -> tuple[Regime, ...]:
        """Those in the table."""
        return STANDARD[self.trained]

    def read_reports(self, results: Path = RESULTS) -> dict[Regime, Report]:
        """What was measured of the trained model, by regime."""
        made = {
            each: Report.read(results / self.trained / each.name / "results.json")
            for each in self.regimes
        }
        return {regime: report for regime, report in made.items() if report.variants}

    def find_case(self, cases: Sequence[Case]) -> Case | None:
        size = self.part, self.height, self.width
        for each in cases:
            if (each.part, each.height, each.width) == size and each.model.startswith(self.model):
                return each
        return None


SHAPES = (
    Shape("SD 1.5 1024²", "unet", "SD 1.5", 1024, 1024, "unet"),
    Shape("Flux 2048²", "transformer", "Flux", 2048, 2048, "flux"),
    Shape("Flux 2048², made for 4 steps", "transformer", "Flux", 2048, 2048, "flux-4-steps"),
    Shape("Wan 832×480", "transformer", "Wan", 480, 832, "wan"),
)


@dataclass(frozen=True)
class Row:
    """time: as a share of the unpatched model's; about as much where a cache decides which calls
    it leaves out, the longest of its regimes where early steps stay exact. found: what was
    measured, by regime. times: how much it was there.
    """

    name: str
    time: float
    found: Mapping[Regime, VariantReport]
    times: Mapping[Regime, float]

    def has_smallest_error(self, regime: Regime, rows: Sequence[Row]) -> bool:
        """Whether no row that takes no more time, as the table tells it, has a smaller error on
        average.
        """
        most = round(100 * self.times[regime])
        rivals = [
            each
            for each in rows
            if regime in each.found and round(100 * each.times[regime]) <= most
        ]
        return _mean(self, regime) == max(_mean(each, regime) for each in rivals)


def list_rows(case: Case, reports: Mapping[Regime, Report]) -> list[Row]:
    """Variants with pictures whose calls were timed, the fastest first."""
    of_calls = time_calls(case)
    times: dict[str, float] = {}
    found: dict[str, dict[Regime, VariantReport]] = {}
    taken: dict[str, dict[Regime, float]] = {}
    for regime, report in reports.items():
        cached = _list_cached(report)
        for one in report.variants:
            behind, aim = cached.get(one.name, ("", 0))
            computes = behind or (UNPATCHED if one.kind == "yardstick" else one.name)
            if not one.squared_error or computes not in of_calls:
                continue
            calls = 1.0 if one.calls is None else one.calls
            if aim and calls == 1:  # the cache left out none
                continue
            share = aim / 100 or calls
            name = _name_row(one, share, behind)
            exact = case.part != "unet" and one.name in EARLY_EXACT
            early = share_early(regime.steps) if exact else 0.0
            time = early + (1 - early) * of_calls[computes]
            times[name] = max(times.get(name, 0.0), time * share)
            found.setdefault(name, {})[regime] = one
            taken.setdefault(name, {})[regime] = time * calls
    rows = [Row(name, times[name], found[name], taken[name]) for name in found if times[name] < 1]
    return sorted(rows, key=lambda row: row.time)


def time_calls(case: Case) -> dict[str, float]:
    """Of the variants of pictures that were timed, as a share of the unpatched model's."""
    measured = {(row.measured.name, row.measured.setting): row for row in compare(case)}
    found = {UNPATCHED: 1.0}
    for name, places in OF_CALLS.items():
        for place in places:
            if place in measured:
                found[name] = 1 / measured[place].speedup.median
    return found


def _list_cached(report: Report) -> dict[str, tuple[str, int]]:
    """By the name of a variant with EasyCache: the variant that it is put behind, and of how many
    per cent of the calls it is to leave.
    """
    named = {name_share(share, before): (before, share) for share in SHARES for before in CACHED}
    found: dict[str, tuple[str, int]] = {}
    for name, threshold in report.thresholds.items():
        before, share = named[name]
        found[name_cache(threshold, name)] = f"Token {before}" if before else UNPATCHED, share
    return found


def _name_row(one: VariantReport, share: float, behind: str) -> str:
    """share: of the calls. behind: the variant that EasyCache is put behind, "" without it."""
    if behind == UNPATCHED:
        return f"EasyCache, about {_tell_share(share)} of the calls"
    if behind:
        return f"EasyCache, about {_tell_share(share)}, behind {behind}"
    if one.kind == "yardstick":
        return f"{UNPATCHED}, {_tell_share(share)} of the steps"
    return one.name


def _tell_share(share: float) -> str:
    return f"{100 * share:.0f} %"


def write_table(shape: Shape, rows: Sequence[Row]) -> str:
    """For the documents. Bold: its error is smaller than that of all that take no more time."""
    columns = [shape.name, "time", *map(_tell_regime, shape.regimes)]
    lines = (
        [row.name, _tell_share(row.time), *(_tell(row, regime, rows) for regime in shape.regimes)]
        for row in rows
    )
    return markdown.write_table(columns, lines)


def _tell_regime(regime: Regime) -> str:
    told = f"{regime.sampler} {regime.scheduler}, {regime.steps} steps"
    return told + (f", cfg {regime.cfg:g}" if regime.cfg != 1 else "")


def _tell(row: Row, regime: Regime, rows: Sequence[Row]) -> str:
    if regime not in row.found:
        return ""
    mark = "**" if row.has_smallest_error(regime, rows) else ""
    time = _tell_share(row.times[regime])
    at = "" if time == _tell_share(row.time) else f" at {time}"
    return f"{mark}{intervals.mean(row.found[regime].decibels)}{mark}{at}"


def _mean(row: Row, regime: Regime) -> float:
    return intervals.mean(row.found[regime].decibels).mean


def write_tables(cases: Sequence[Case], results: Path = RESULTS) -> list[str]:
    """One for each shape that was timed and whose pictures were made."""
    tables = []
    for shape in SHAPES:
        case = shape.find_case(cases)
        rows = list_rows(case, shape.read_reports(results)) if case else []
        if rows:
            tables.append(write_table(shape, rows))
    return tables
