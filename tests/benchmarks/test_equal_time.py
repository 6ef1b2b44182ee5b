"""Times of real shapes beside errors of the small models: what is best in a given time."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from benchmarks import intervals
from benchmarks.markdown import replace_table
from benchmarks.quality import cli
from benchmarks.quality.equal_time import (
    SHAPES,
    Row,
    list_rows,
    time_calls,
    write_table,
    write_tables,
)
from benchmarks.quality.measure import choose
from benchmarks.quality.options import parse
from benchmarks.quality.patches import DOWNSAMPLE_BY_DEFAULT
from benchmarks.quality.places import PLOTS, SPEED_RESULTS, find_results
from benchmarks.quality.plots import DRAWN, list_panels, mark, read_mark
from benchmarks.quality.regimes import FOUR_STEPS, STANDARD
from benchmarks.quality.report import Report, VariantReport
from benchmarks.quality.rivals_table import write_rivals
from benchmarks.quality.variants import list_variants
from benchmarks.settings import DOWNSAMPLE, MERGE_ALL, share_early
from benchmarks.speed.results import Case, Measured, Results
from benchmarks.speed.windows import WINDOWS_2

PACK = Path(__file__).parents[2]
EIGHT_STEPS = STANDARD["flux"][0]


@pytest.fixture
def case() -> Case:
    measured = [
        Measured("unpatched", "unpatched", seconds=[10.0, 20.0]),
        Measured("limit", "limit", MERGE_ALL.name, seconds=[1.0, 2.0]),
        Measured("ours", "ours", MERGE_ALL.name, seconds=[5.0, 10.0]),
        Measured("ours, interleaved", "ours", DOWNSAMPLE.name, seconds=[8.0, 16.0]),
    ]
    return Case("unet", "SD 1.5", 768, 768, 1, "float32", measured=measured)


def report(thresholds: dict[str, float] | None = None, **errors: float) -> Report:
    """errors: of two pictures, by the name of the variant with "_" for " "."""
    variants = []
    for name, error in errors.items():
        kind = "yardstick" if name.startswith(("unpatched", "EasyCache")) else "ours"
        variants.append(VariantReport(name.replace("_", " "), kind, [error, error]))
    return Report(thresholds=thresholds or {}, variants=variants)


def test_a_call_takes_what_it_took_beside_the_unpatched_model(case: Case) -> None:
    found = time_calls(case)
    names = (DOWNSAMPLE_BY_DEFAULT, "Token Downsample ×2, all steps")
    expected = {"unpatched": 1.0, "Token Merge 0.5": 0.5, **dict.fromkeys(names, 0.8)}
    assert found == pytest.approx(expected)


def test_fewer_calls_take_less_time(case: Case) -> None:
    cached = "EasyCache 0.1 (70 %), Downsample ×2, all steps"
    found = report(
        {"(70 %), Downsample ×2, all steps": 0.1},
        **{
            "unpatched,_6_steps": 1e-3,
            "Token_Merge_0.5": 1e-2,
            cached: 1e-4,
            "Token_Merge_0.9": 1.0,
        },
    )
    found.variants[0].calls, found.variants[2].calls = 0.75, 0.65
    rows = list_rows(case, {EIGHT_STEPS: found})
    assert [(row.name, pytest.approx(row.time)) for row in rows] == [
        ("Token Merge 0.5", 0.5),
        ("EasyCache, about 70 %, behind Token Downsample ×2, all steps", 0.56),
        ("unpatched, 75 % of the steps", 0.75),
    ]
    assert rows[1].times[EIGHT_STEPS] == pytest.approx(0.8 * 0.65)


def test_exact_early_steps_take_the_time_of_the_unpatched_model(case: Case) -> None:
    assert [share_early(8), share_early(4)] == [0.25, 0.25]
    assert share_early(20) == 0.2
    names = (DOWNSAMPLE_BY_DEFAULT, "Token Downsample ×2, all steps")
    made = {EIGHT_STEPS: report(**dict.fromkeys(names, 1e-3))}
    of_unet = {row.name: row.time for row in list_rows(case, made)}
    assert of_unet == dict.fromkeys(names, pytest.approx(0.8))
    case.part = "transformer"
    case.measured.append(Measured("ours", "ours", WINDOWS_2.name, seconds=[4.0, 8.0]))
    times = {row.name: row.time for row in list_rows(case, made)}
    assert times == dict(zip(names, map(pytest.approx, (0.25 + 0.75 * 0.4, 0.4)), strict=True))


def test_the_same_share_of_the_steps_is_one_row(case: Case) -> None:
    eight, four = report(**{"unpatched,_6_steps": 1e-3}), report(**{"unpatched,_3_steps": 1e-2})
    eight.variants[0].calls = four.variants[0].calls = 0.75
    (row,) = list_rows(case, {EIGHT_STEPS: eight, FOUR_STEPS: four})
    assert set(row.found) == {EIGHT_STEPS, FOUR_STEPS}


def test_the_smallest_error_in_no_more_time_is_marked() -> None:
    errors = {"fast": (0.5, 1e-2), "larger error": (0.6, 1e-1), "smaller error": (0.7, 1e-3)}
    rows = [
        Row(
            name,
            time,
            {EIGHT_STEPS: VariantReport(name, "ours", [error] * 2)},
            {EIGHT_STEPS: time},
        )
        for name, (time, error) in errors.items()
    ]
    assert [row.name for row in rows if row.has_smallest_error(EIGHT_STEPS, rows)] == [
        "fast",
        "smaller error",
    ]
    written = write_table(SHAPES[1], rows)  # of 8 steps, and of 8 with guidance
    assert "| fast | 50 % | **20.0 ± 0.0** |  |" in written
    assert "| larger error | 60 % | 10.0 ± 0.0 |  |" in written


def test_a_table_takes_the_place_of_the_one_of_its_shape() -> None:
    old = "| A | time | x |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n"
    other = old.replace("A", "B")
    new = old.replace("1", "9")
    assert replace_table(f"{old}\n{other}", new, known_by=2) == f"{new}\n{other}"
    with pytest.raises(ValueError, match=r"0 tables with the columns \| A \| time \|, expected 1"):
        replace_table(other, new, known_by=2)


def test_the_document_has_the_tables_of_the_results() -> None:
    document = (PACK / "docs/quality.md").read_text(encoding="utf-8")
    tables = write_tables(Results.read(SPEED_RESULTS).cases)
    assert len(tables) == len(SHAPES)
    assert all(table in document for table in [*tables, write_rivals()])


@pytest.mark.parametrize("page", ["README.md", "docs/quality.md"])
def test_the_pages_have_what_was_measured_of_a_flux_for_four_steps(page: str) -> None:
    (shape,) = (shape for shape in SHAPES if shape.trained == "flux-4-steps")
    found = {one.name: one for one in shape.read_reports()[FOUR_STEPS].variants}
    text = (PACK / page).read_text(encoding="utf-8")
    for name in (DOWNSAMPLE_BY_DEFAULT, "unpatched, 3 steps"):
        assert f"{intervals.mean(found[name].decibels).mean:.1f} dB" in text


def test_the_plots_show_the_results() -> None:
    panels = list_panels(Results.read(SPEED_RESULTS).cases)
    assert [len(panel.points) > 2 for panel in panels] == [True] * len(DRAWN)
    assert read_mark(PLOTS) == mark(panels)


def test_a_folder_without_timed_shapes_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["times", "--speed", str(tmp_path)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"--speed is {tmp_path}" in said and "expected a folder with results" in said


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_was_timed_and_has_pictures(shape) -> None:
    case = shape.find_case(Results.read(SPEED_RESULTS).cases)
    assert case
    assert shape.read_reports()


def test_the_documented_command_measures_the_table_of_rivals(tmp_path: Path) -> None:
    page = (PACK / "benchmarks" / "quality" / "README.md").read_text(encoding="utf-8")
    command = page[page.index("## Rivals") :].split("```")[1].replace("\\\n", "")
    options = parse([*shlex.split(command)[4:], "--out", str(tmp_path)])
    for regime in options.regimes:
        chosen = choose(list_variants(options.model, regime), options.only)
        place = find_results(options.model, options.tokens) / regime.name
        published = Report.read(place / "results.json").variants
        counts = {one.name: len(one.squared_error) for one in published}
        assert {counts[one.name] for one in chosen} == {options.pairs}


def test_a_pattern_that_fits_no_variant_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"--only is 'unpatched, \[89\] steps', expected one"):
        choose(list_variants("flux", FOUR_STEPS), ["Token*", "unpatched, [89] steps"])
