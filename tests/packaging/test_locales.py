"""Every text of every node is translated, and nothing else, as ComfyUI's server gives it out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import folder_paths
import pytest
from app.custom_node_manager import CustomNodeManager
from comfy_api.latest import io
from token_merge.nodes import NODES

from devtools.server import link

ROOT = Path(__file__).parents[2]
LETTERS = {"zh": r"[\u4e00-\u9fff]", "ko": r"[\uac00-\ud7a3]"}
"""The key is the language, as the page names it."""
EVERY_LANGUAGE = pytest.mark.parametrize("language", LETTERS)

Texts = dict[tuple[str, ...], str]
"""The keys are those from the node's id on."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the server answers at /i18n where this pack is the only one."""
    folder = tmp_path_factory.mktemp("custom_nodes")
    link(folder / "token-merge", ROOT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_paths, "get_folder_paths", lambda kind: [str(folder)])
        return CustomNodeManager().build_translations()


def flatten(tree: dict[str, Any], keys: tuple[str, ...] = ()) -> Texts:
    texts: Texts = {}
    for key, value in tree.items():
        inner = (*keys, key)
        texts |= flatten(value, inner) if isinstance(value, dict) else {inner: value}
    return texts


def list_texts(schema: io.Schema) -> Iterator[tuple[tuple[str, ...], str]]:
    """The English ones, under the keys by which the page looks for translations."""
    yield ("display_name",), schema.display_name
    yield ("description",), schema.description
    for item in schema.inputs:
        yield ("inputs", item.id, "name"), item.display_name or item.id
        yield ("inputs", item.id, "tooltip"), item.tooltip
    for index, item in enumerate(schema.outputs):
        if item.display_name:  # otherwise the page shows the type in its own translation
            yield ("outputs", str(index), "name"), item.display_name
        yield ("outputs", str(index), "tooltip"), item.tooltip


SCHEMAS = [node.GET_SCHEMA() for node in NODES]
ENGLISH: Texts = {
    (schema.node_id, *keys): text for schema in SCHEMAS for keys, text in list_texts(schema)
}
SENTENCES = [keys for keys in ENGLISH if keys[-1] in ("description", "tooltip")]


def test_the_server_finds_these_languages(served) -> None:
    assert {language: set(files) for language, files in served.items()} == {
        language: {"nodeDefs"} for language in LETTERS
    }


@EVERY_LANGUAGE
def test_every_text_is_translated_and_no_other(served, language: str) -> None:
    translated = flatten(served[language]["nodeDefs"])
    assert translated.keys() - ENGLISH.keys() == set(), "too many"
    assert ENGLISH.keys() - translated.keys() == set(), "missing"


@EVERY_LANGUAGE
def test_sentences_are_in_the_language_and_keep_the_numbers(served, language: str) -> None:
    translated = flatten(served[language]["nodeDefs"])
    for keys in SENTENCES:
        assert re.search(LETTERS[language], translated[keys]), keys
        lost = count_numbers(ENGLISH[keys]) - count_numbers(translated[keys])
        assert not lost, keys


def count_numbers(text: str) -> Counter[str]:
    return Counter(re.findall(r"\d+(?:\.\d+)?", text))


@EVERY_LANGUAGE
def test_what_is_one_text_in_english_is_one_text(served, language: str) -> None:
    """The simple and the Advanced form of a node say the same of an input."""
    translated = flatten(served[language]["nodeDefs"])
    first: dict[str, str] = {}
    for keys, text in ENGLISH.items():
        assert first.setdefault(text, translated[keys]) == translated[keys], keys


@EVERY_LANGUAGE
def test_the_page_shows_the_texts_as_they_stand(served, language: str) -> None:
    """These signs are commands in a message of the page's translations (vue-i18n)."""
    for keys, text in flatten(served[language]["nodeDefs"]).items():
        assert not set(text) & set("{}@$|"), keys
