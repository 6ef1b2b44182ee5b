"""The whole benchmark, end to end, on narrow models. No time is judged."""

from __future__ import annotations

import json
from pathlib import Path

from token_merge.tome_core.layer import MOST_GROUPS

from benchmarks import settings
from benchmarks.speed import variants
from benchmarks.speed.inputs import QUICK_CLIPS
from benchmarks.speed.results import Case, Measured, Results
from benchmarks.speed.windows import WINDOWS

TRANSFORMER_PARTS = ("transformer", "transformer attention")
SETTINGS = {each.name: each for each in (settings.MERGE, settings.MERGE_ALL, settings.DOWNSAMPLE)}


def cases(results: Results, part: str) -> list[Case]:
    return [case for case in results.cases if case.part == part]


def is_watched(one: Measured) -> bool:
    """Local windows call no attention function that could be watched."""
    return one.setting not in [each.name for each in WINDOWS]


def fits(found: list[list[int]], expected: list[list[int]]) -> bool:
    """The same, but that up to three queries more are merged, or are in two of four groups."""
    return all(
        abs(one[0] - other[0]) <= MOST_GROUPS - 1 and one[1:] == other[1:]
        for one, other in zip(found, expected, strict=True)
    )


def test_every_variant_was_measured(quick: tuple[Path, Results]) -> None:
    case = cases(quick[1], "unet")[0]
    measured = {(one.setting, one.name) for one in case.measured}
    for setting in (settings.MERGE, settings.MERGE_ALL):
        assert {(setting.name, name) for name in ("limit", "ours")} <= measured
    assert (settings.MERGE_ALL.name, "tomesd") in measured
    assert {(settings.MERGE_QUERIES.name, name) for name in ("ours", "TomePatchModel")} <= measured
    of_downsampling = ("limit", "ours, stratified", "ours, interleaved", "ToDo")
    assert {(settings.DOWNSAMPLE.name, name) for name in of_downsampling} <= measured
    assert {(None, "unpatched"), (None, "ComfyUI's HyperTile")} <= measured


def test_no_variant_failed_and_each_round_was_counted(quick: tuple[Path, Results]) -> None:
    for case in quick[1].cases:
        assert not [one.failed for one in case.measured if one.failed]
        rounds = {len(one.seconds) for one in case.measured}
        assert len(rounds) == 1 and rounds != {0}
    rounds_of_first = cases(quick[1], "unet")[0].measured[0].seconds
    assert len(rounds_of_first) == 2, "the warm-up must not count"


def test_all_parts_are_there(quick: tuple[Path, Results]) -> None:
    assert {case.part for case in quick[1].cases} == {"unet", "graph", *TRANSFORMER_PARTS}
    assert {"processor", "cores", "torch", "comfyui", "commit", "date"} <= set(quick[1].machine)


def test_limit_ours_and_peers_give_attention_equal_lengths(quick: tuple[Path, Results]) -> None:
    """As noted where ComfyUI's attention function is called, not as computed here or there."""
    checked = 0
    parts = ("unet", *TRANSFORMER_PARTS)
    for case in [case for part in parts for case in cases(quick[1], part)]:
        limits = {one.setting: one for one in case.measured if one.kind == "limit"}
        unpatched = next(one for one in case.measured if one.kind == "unpatched")
        for one in case.measured:
            if one.setting in limits and is_watched(one):
                assert fits(one.lengths, limits[one.setting].lengths), (case.name, one.name)
                assert one.lengths != unpatched.lengths, (case.name, one.name)
                checked += 1
    assert checked > 20


def test_limit_leaves_as_many_tokens_as_the_setting_says(quick: tuple[Path, Results]) -> None:
    case = cases(quick[1], "unet")[0]
    for limit in (one for one in case.measured if one.kind == "limit"):
        setting = SETTINGS[limit.setting or ""]
        assert limit.lengths[0][:2] == [*setting.remaining(case.height // 8, case.width // 8)]


def test_transformers_attend_to_whole_prompts_and_to_no_more_of_the_picture_than_stated(
    quick: tuple[Path, Results],
) -> None:
    expected = {clip.frames: clip.stream for clip in QUICK_CLIPS[1:]}
    for part in TRANSFORMER_PARTS:
        names = [case.name for case in cases(quick[1], part)]
        long = sum(clip.is_long for clip in QUICK_CLIPS)
        assert len(names) == len(QUICK_CLIPS) - (long if part == "transformer attention" else 0)
        for case in cases(quick[1], part)[1:]:
            stream = expected[case.frames]
            grid = stream.grid
            blocks = case.measured[0].lengths[0][2]
            assert case.measured[0].lengths == [[stream.length, stream.length, blocks]]
            for one in filter(is_watched, case.measured[1:]):
                assert one.setting is not None
                left = SETTINGS[one.setting].remaining(grid.height, grid.width, grid.frames)
                assert fits(one.lengths, [[*(stream.before + n for n in left), blocks]])


def test_memory_of_every_variant_was_measured(quick: tuple[Path, Results]) -> None:
    for case in [*cases(quick[1], "unet"), *cases(quick[1], "transformer")]:
        assert all(one.peak_bytes and one.peak_bytes > 1000 for one in case.measured)


def test_numbers_and_tables_are_left(quick: tuple[Path, Results]) -> None:
    out, results = quick
    data = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert len(data["cases"]) == len(results.cases)
    tables = (out / "tables.txt").read_text(encoding="utf-8")
    assert "of limit" in tables and "TomePatchModel" in tables


def test_tome_patch_model_is_no_peer_where_it_reduces_nothing() -> None:
    assert "TomePatchModel" not in {variant.name for variant in variants.list_for_unet(finest=2)}
