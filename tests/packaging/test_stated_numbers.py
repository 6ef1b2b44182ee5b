"""Numbers in sentences of the documents are those that were measured, or those of the code.

Numbers in tables are compared by the tests of what has them.
"""

from __future__ import annotations

import json
import re
from statistics import fmean
from typing import Any

import pytest
from support.stated import STATED
from support.stated.numbers import ROOT, find_decibels, list_variants
from token_merge.nodes import NODES

from benchmarks.quality.patches import ALL_STEPS, DOWNSAMPLE_BY_DEFAULT, MERGE_BY_DEFAULT
from benchmarks.speed import documents


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
