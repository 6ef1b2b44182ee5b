"""README.md and docs/speed.md have the tables of what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.speed import documents
from benchmarks.speed.results import Results

PACK = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results() -> dict[str, Results]:
    return documents.read_results()


@pytest.mark.parametrize("table", documents.TABLES, ids=lambda table: table.title)
def test_the_page_about_speed_has_the_table(
    table: documents.Table, results: dict[str, Results]
) -> None:
    written = table.write(results)
    assert written in (PACK / "docs/speed.md").read_text(encoding="utf-8")
    assert written.count("x ") > 5


def test_the_readme_has_the_table(results: dict[str, Results]) -> None:
    written = documents.write_readme_table(results)
    assert written in (PACK / "README.md").read_text(encoding="utf-8")


def test_what_the_node_leaves_alone_on_such_a_gpu_is_not_given_as_a_speed_up(
    results: dict[str, Results],
) -> None:
    of_nodes = documents.TABLES[0].write(results).splitlines()[3].split(" | ")
    assert of_nodes[1] == "not reduced" and of_nodes[3].endswith("x")


def test_the_page_gives_the_range_of_our_peaks_of_memory_on_the_gpu(
    results: dict[str, Results],
) -> None:
    of_gpu = [table for table in documents.TABLES if table.machine == documents.GPU]
    cases = [
        (case, line)
        for table in of_gpu
        for shape in table.shapes
        for line in table.lines
        if line.kind and (case := shape.find(table.part, results[documents.GPU].cases))
    ]
    rows = [row for case, line in cases if (row := line.find(case))]
    peaks = [100 * row.peak for row in rows if row.peak is not None]
    said = f"{min(peaks):.0f} to {max(peaks):.0f} % of the unpatched model's"
    assert said in (PACK / "docs/speed.md").read_text(encoding="utf-8")
