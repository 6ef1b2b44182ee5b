"""``quality measure`` from the command line to the table, on few and small pictures and clips."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from benchmarks import machine
from benchmarks.quality import cache_thresholds, cli, tables, yardsticks
from benchmarks.quality.report import Report, VariantReport
from devtools import picture

REGIME = "euler-simple-4-cfg1"
OURS = "Token Downsample ×2, all steps"
DRAWN = "Token Downsample ×2, no local windows"
COMMIT = "0123456789ab+"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return measure(tmp_path_factory.mktemp("pictures"), "flux", "16", "EasyCache *(85 %)")


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return measure(tmp_path_factory.mktemp("clips"), "wan", "8", "EasyCache*")


def measure(folder: Path, model: str, tokens: str, cached: str) -> Report:
    pytest.importorskip("stlpips_pytorch")
    words = ["measure", "--model", model, "--tokens", tokens, "--pairs", "2", "--out", str(folder)]
    words += [
        "--regimes",
        REGIME,
        "--only",
        "unpatched, 2*",
        cached,
        OURS,
        DRAWN,
        "--against",
        OURS,
    ]
    # Some processors are very slow in bfloat16.
    words += ["--precision", "float32"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yardsticks, "SHARES", (85,))
        patch.setattr(cache_thresholds, "LADDER", (0, 48, 300))
        patch.setattr(machine, "find_commit", lambda root: COMMIT)
        assert cli.main(words) == 0
    assert [place.name for place in folder.iterdir()] == [REGIME]
    return Report.read(folder / REGIME / "results.json")


def test_the_report_says_how_it_was_computed(pictures: Report, moving: Report) -> None:
    assert pictures.settings["sampler"] == "euler, simple schedule, 4 steps, cfg 1"
    assert pictures.settings["computed in"] == "float32"
    assert pictures.settings["tokens"] == "16 x 16"
    assert moving.settings["tokens"] == "9 x 8 x 8"


@pytest.mark.parametrize("kind", ["pictures", "moving"])
def test_every_variant_has_errors_and_its_effort(kind: str, request: pytest.FixtureRequest) -> None:
    report: Report = request.getfixturevalue(kind)
    found = {one.name: one for one in report.variants}
    (cached,) = (
        one for name, one in found.items() if name.startswith("EasyCache 0") and ", " not in name
    )
    fewer, window, drawn = (found[name] for name in ("unpatched, 2 steps", OURS, DRAWN))
    assert (fewer.calls, fewer.pairs) == (0.5, 0.5)
    assert window.calls == drawn.calls == 1
    assert 0.2 < (drawn.pairs or 0) < (window.pairs or 0) < 0.6
    assert 0.5 <= (cached.calls or 0) < 1
    for one in report.variants:
        assert [len(one.squared_error), len(one.st_lpips)] == [2, 2]
        assert min(*one.squared_error, *one.st_lpips) > 0
        assert len(one.flicker) == (2 if kind == "moving" else 0)
        assert one.commit == COMMIT


def test_more_pictures_are_put_behind_those_that_were_measured(tmp_path: Path) -> None:
    words = ["measure", "--model", "flux", "--tokens", "8", "--precision", "float32"]
    words += ["--regimes", REGIME, "--only", DRAWN]
    rows = {}
    for folder, counts in (("at_once", [5]), ("in_parts", [1, 4, 5, 2])):
        out = tmp_path / folder
        for count in counts:
            assert cli.main([*words, "--pairs", str(count), "--out", str(out)]) == 0
        report = Report.read(out / REGIME / "results.json")
        assert report.settings["pairs"] == 5
        (rows[folder],) = report.variants
    assert rows["in_parts"] == rows["at_once"]


def test_the_table_is_in_the_order_of_the_variants(pictures: Report) -> None:
    names = [one.name for one in pictures.variants]
    assert names[:3] == ["unpatched, 2 steps", OURS, DRAWN]
    text = render(pictures)
    assert all(name in text for name in names[:3])
    assert text.index("unpatched, 2 steps") < text.index(OURS) < text.index("EasyCache 0")


def test_the_table_leaves_out_what_nobody_measured_and_says_which_gain_is_sure() -> None:
    ours = VariantReport("ours", "ours", squared_error=[1e-3, 1e-4], calls=1.0, pairs=0.4)
    peer = VariantReport("peer", "peer", squared_error=[1e-2, 1e-3])
    text = render(Report(variants=[ours, peer]), "ours")
    assert "-10.0 ± 0.0" in text and "40%" in text
    assert "flicker" not in text
    with pytest.raises(RuntimeError, match="--against is 'theirs', expected one of ours, peer"):
        tables.build_table(Report(variants=[ours, peer]), "theirs")


def test_a_sheet_shows_the_unpatched_picture_beside_that_of_each_variant(tmp_path: Path) -> None:
    words = ["sheet", "--model", "flux", "--tokens", "16", "--pairs", "2", "--out", str(tmp_path)]
    assert cli.main([*words, "--regimes", REGIME, "--precision", "float32", "--only", OURS]) == 0
    sheet = Image.open(tmp_path / f"{REGIME}.jpg")
    assert (sheet.width, sheet.height) == (2 * 128 + 8, 2 * (128 + 20))
    unpatched, ours = (sheet.crop((left, 0, left + 128, 128)) for left in (0, 136))
    assert 15 < picture.psnr(ours, unpatched) < 60


def test_equal_pictures_are_called_equal() -> None:
    assert "equal" in render(Report(variants=[VariantReport("a", "ours", squared_error=[0.0])]))


def render(report: Report, against: str | None = None) -> str:
    console = Console(width=tables.WIDTH)
    with console.capture() as captured:
        console.print(tables.build_table(report, against))
    return captured.get()
