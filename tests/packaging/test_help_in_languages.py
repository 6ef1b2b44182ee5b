"""Help pages in other languages have every section of the English ones, in the words of the nodes.

ComfyUI's page asks for ``docs/<node>/<language>.md``, and then for ``docs/<node>.md``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from token_merge.nodes import NODES

ROOT = Path(__file__).parents[2]
HELP = ROOT / "web" / "docs"
IDS = [node.GET_SCHEMA().node_id for node in NODES]
LANGUAGES = sorted(path.parent.name for path in (ROOT / "locales").glob("*/nodeDefs.json"))
HEADINGS = {
    "What it does": {"zh": "作用", "ko": "하는 일"},
    "Inputs": {"zh": "输入", "ko": "입력"},
    "What it does not do": {"zh": "不做的事", "ko": "하지 않는 일"},
    "The published method": {"zh": "已发表的方法", "ko": "논문의 방법"},
    "The published methods": {"zh": "已发表的方法", "ko": "논문의 방법"},
    "Outputs": {"zh": "输出", "ko": "출력"},
    "What the report says": {"zh": "报告的内容", "ko": "보고서 내용"},
    "Models": {"zh": "模型", "ko": "모델"},
    "Sources": {"zh": "来源", "ko": "출처"},
}
AS_IN_KSAMPLER = {"zh": "与 KSampler 相同", "ko": "KSampler와 같음"}
EVERY_PAGE = pytest.mark.parametrize(
    ("node", "language"), [(node, language) for node in IDS for language in LANGUAGES]
)


def read(node: str, language: str = "") -> str:
    path = HELP / node / f"{language}.md" if language else HELP / f"{node}.md"
    return path.read_text(encoding="utf-8")


def list_headings(page: str) -> list[str]:
    return re.findall(r"^## (.*)$", page, re.MULTILINE)


def list_points(page: str) -> list[int]:
    """How many points each section has."""
    return [len(re.findall(r"^- ", part, re.MULTILINE)) for part in page.split("\n## ")]


@EVERY_PAGE
def test_every_language_has_every_section_and_point(node: str, language: str) -> None:
    english, page = read(node), read(node, language)
    assert list_headings(page) == [HEADINGS[each][language] for each in list_headings(english)]
    assert list_points(page) == list_points(english)


@EVERY_PAGE
def test_inputs_are_called_and_explained_as_on_the_node(node: str, language: str) -> None:
    texts = json.loads((ROOT / "locales" / language / "nodeDefs.json").read_text(encoding="utf-8"))
    page = read(node, language)
    assert page.startswith(f"# {texts[node]['display_name']}\n")
    english = re.findall(r"^- `(\w+)` \(([^)]*)\):", read(node), re.MULTILINE)
    assert english
    for name, accepted in english:
        values = " ".join(accepted.split()).replace(" to ", "–")
        values = values.replace("as in KSampler", AS_IN_KSAMPLER[language])
        said = texts[node]["inputs"].get(name)
        if said is None:  # an output
            continue
        stop = "。" if language == "zh" else ". "
        assert f"- `{name}` ({values}): **{said['name']}**{stop}{said['tooltip']}\n" in page


@EVERY_PAGE
def test_links_and_numbers_are_those_of_the_english_page(node: str, language: str) -> None:
    english, page = read(node), read(node, language)
    links = r"\]\((\S+?)\)"
    assert re.findall(links, page) == re.findall(links, english)
    numbers = r"(?<![\w.])0\.\d+|\d+(?:\.\d+)+"
    assert set(re.findall(numbers, page)) == set(re.findall(numbers, english))
