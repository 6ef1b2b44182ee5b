"""``quality measure`` from the command line to the table, on few and small pictures."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.quality import cli, tables, yardsticks
from benchmarks.quality.report import Report, VariantReport
from benchmarks.trained.places import WEIGHTS

REGIME = "euler-simple-4-cfg1"
OURS = "Token Downsample ×2, interleaved"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of results, and the regime's folder in it."""
    pytest.importorskip("stlpips_pytorch")
    folder = tmp_path_factory.mktemp("measured")
    # Some processors are very slow in bfloat16.
    arguments = ["--tokens", "16", "--pairs", "2", "--precision", "float32"]
    arguments += ["--only", "plain, 3*", "EasyCache *(85 %)", OURS, "--against", OURS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yardsticks, "SHARES", (85,))
        measure(folder, arguments)
    return folder / "results"


def measure(folder: Path, arguments: list[str]) -> None:
    common = ["measure", "--model", "flux", "--parts", "pictures", "--regimes", REGIME]
    common += ["--out", str(folder / "results")]
    assert cli.main([*common, *arguments], folder / "kept") == 0


def test_another_regime_than_the_default_has_a_folder_of_its_own(measured: Path) -> None:
    assert [place.name for place in measured.iterdir()] == [REGIME]
    report = Report.read(measured / REGIME / "results.json")
    assert report.settings["sampler"] == "euler, simple schedule, 4 steps, cfg 1"


def test_what_bfloat16_alone_changes_is_measured(tmp_path: Path) -> None:
    pytest.importorskip("stlpips_pytorch")
    measure(tmp_path, ["--tokens", "16", "--pairs", "1", "--only", "plain, 3*"])
    report = Report.read(tmp_path / "results" / REGIME / "results.json")
    assert report.settings["computed in"] == "bfloat16"
    assert 30 < (report.floor or 0) < 100


def test_cost_is_counted_for_every_variant(measured: Path) -> None:
    report = Report.read(measured / REGIME / "results.json")
    found = {one.name: one for one in report.variants}
    assert found["plain, 3 steps"].calls == found["plain, 3 steps"].pairs == 0.75
    assert found[OURS].calls == 1 and 0.3 < (found[OURS].pairs or 0) < 0.5
    (cached,) = (one for name, one in found.items() if name.startswith("EasyCache"))
    assert 0.5 <= (cached.calls or 0) < 1
    assert found["plain, 3 steps"].prediction_error is None
    assert all(len(one.st_lpips) == 2 for one in report.variants)


def test_sheets_are_drawn_from_the_kept_pictures(measured: Path, tmp_path: Path) -> None:
    folder = measured.parent / "kept"
    kept = sorted(folder.rglob("*"))
    # A copy: samples are drawn beside the weights.
    weights = shutil.copy(WEIGHTS["flux"], tmp_path)
    arguments = ["draw", "--model", "flux", "--weights", str(weights), "--tokens", "16"]
    arguments += ["--precision", "float32", "--regimes", REGIME, "--out", str(measured)]
    assert cli.main(arguments, folder) == 0
    assert (measured / REGIME / "contact-sheet.png").is_file()
    assert sorted(folder.rglob("*")) == kept


def test_the_table_is_in_the_order_of_the_variants(measured: Path) -> None:
    report = Report.read(measured / REGIME / "results.json")
    names = [one.name for one in report.variants]
    assert names[:2] == ["plain, 3 steps", OURS] and names[2].startswith("EasyCache")
    text = render(report)
    assert sorted(names, key=text.index) == names


def test_the_table_leaves_out_what_nobody_measured_and_says_which_gain_is_sure() -> None:
    ours = VariantReport("ours", "ours", squared_error=[1e-3, 1e-4], calls=1.0, pairs=0.4)
    peer = VariantReport("peer", "peer", squared_error=[1e-2, 1e-3])
    text = render(Report(variants=[ours, peer]), "ours")
    assert "-10.0 ± 0.0" in text and "40%" in text
    assert "SSIM" not in text and "speed-up" not in text
    with pytest.raises(RuntimeError, match="--against is 'theirs', expected one of ours, peer"):
        tables.build_table(Report(variants=[ours, peer]), "theirs")


def test_equal_pictures_are_called_equal() -> None:
    assert "equal" in render(Report(variants=[VariantReport("a", "ours", squared_error=[0.0])]))


def render(report: Report, against: str | None = None) -> str:
    console = Console(width=tables.WIDTH)
    with console.capture() as captured:
        console.print(tables.build_table(report, against))
    return captured.get()
