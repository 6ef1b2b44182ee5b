"""Clips of the small video model are measured beside plain with fewer steps."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from rich.console import Console

from benchmarks.quality import clip_session, options, yardsticks
from benchmarks.quality.regimes import Regime
from benchmarks.quality.report import Report, VariantReport

NAMES = ("plain, 2 steps", "Token Downsample ×2, window", "Token Downsample ×2")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder: Path = tmp_path_factory.mktemp("clips")
    words = ["measure", "--model", "wan", "--tokens", "8", "--pairs", "2", "--out", str(folder)]
    words += ["--regimes", "euler-simple-4-cfg1", "--only", *NAMES, "EasyCache*"]
    words += ["--precision", "float32"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clip_session, "HELD_OUT", 2)
        patch.setattr(yardsticks, "SHARES", (70,))
        clip_session.run(options.parse(words, folder), Console(quiet=True))
    return Report.read(folder / "euler-simple-4-cfg1" / "results.json")


@pytest.fixture(scope="module")
def measured(report: Report) -> dict[str, VariantReport]:
    return {one.name: one for one in report.variants}


def test_every_variant_has_an_error_and_a_flicker_for_each_clip(
    measured: dict[str, VariantReport],
) -> None:
    assert set(NAMES) < set(measured)
    for one in measured.values():
        errors = one.squared_error, one.st_lpips, one.flicker
        assert [len(each) for each in errors] == [2, 2, 2]
        assert min(map(min, errors)) > 0


def test_the_effort_of_each_is_known(measured: dict[str, VariantReport]) -> None:
    fewer, window, drawn = (measured[name] for name in NAMES)
    assert (fewer.calls, fewer.pairs) == (0.5, 0.5)
    assert (window.calls, drawn.calls) == (1, 1)
    assert drawn.pairs == pytest.approx(0.25, abs=0.02)
    assert 0.25 < (window.pairs or 0) < 0.5


def test_easycache_leaves_calls_to_the_last_ones(measured: dict[str, VariantReport]) -> None:
    cached = [one for name, one in measured.items() if name.startswith("EasyCache")]
    assert cached
    assert all(0 < (one.calls or 0) < 1 for one in cached)


def test_the_report_says_how_it_was_computed(report: Report) -> None:
    assert report.settings["computed in"] == "float32"


def test_clips_that_are_made_anew_in_part_slide(tmp_path: Path) -> None:
    regime = Regime("euler", "simple", 4, denoise=0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clip_session, "HELD_OUT", 16)
        held_out = clip_session.HeldOut.load(tmp_path, 2, 8, regime)
        (batch,) = clip_session.make_batches(tmp_path, 2, 8, regime)
    assert all(clip_session.SLIDES in caption for caption in held_out.captions)
    assert batch.start is not None
    assert torch.equal(batch.start, held_out.starts)
    assert batch.start.shape == (2, *batch.shape)
    assert batch.start.diff(dim=2).abs().mean() > 0.01
