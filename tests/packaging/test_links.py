"""Links and pictures of the documents lead somewhere, in a clone and in the packed archive."""

from __future__ import annotations

import os.path
import re
from itertools import pairwise
from pathlib import Path

import pytest
from comfy_cli.registry.config_parser import extract_node_configuration

ROOT = Path(__file__).parents[2]
REPOSITORY = extract_node_configuration(str(ROOT / "pyproject.toml")).project.urls.repository
# Other documents, such as those that hold terms of use, are not read here.
FOLDERS = (".", ".github", "benchmarks", "benchmarks/quality", "benchmarks/trained", "docs")
PAGES = [page for folder in FOLDERS for page in sorted((ROOT / folder).glob("*.md"))]
PAGES += sorted((ROOT / "web" / "docs").rglob("*.md"))
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
DEVELOPMENT = {"benchmarks", "devtools", "tests"}


def links(page: Path) -> list[str]:
    """Targets of links and pictures, written in place or as a reference below the text."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^]]+\]: (\S+)$", text, re.M)


def local(page: Path) -> list[tuple[str, str]]:
    """(path from the root of the tree, heading or "") of the links to files beside the page."""
    found = []
    for target in links(page):
        path, _, heading = target.partition("#")
        if ":" not in path:
            beside = page.relative_to(ROOT).parent / path if path else page.relative_to(ROOT)
            found.append((os.path.normpath(beside.as_posix()), heading))
    return found


def headings(page: Path) -> set[str]:
    """As GitHub names them in an address."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in found}


@EVERY_PAGE
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for path, heading in local(page):
        assert (ROOT / path).exists(), path
        assert not heading or heading in headings(ROOT / path), heading


@EVERY_PAGE
def test_no_line_of_a_paragraph_begins_as_an_item_of_a_list(page: Path) -> None:
    """Markdown would break the paragraph there, as before "1." at the end of a sentence."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for before, line in pairwise(lines):
        in_paragraph = before and not re.match(r"\s|[-+*|#>]|\d+[.)]\s", before)
        assert not (in_paragraph and re.match(r" {0,3}(\d+[.)]|[-+*])\s", line)), line


@EVERY_PAGE
def test_addresses_within_the_repository_name_files_of_the_tree(page: Path) -> None:
    for target in links(page):
        if target.startswith(f"{REPOSITORY}/"):
            kind, branch, path = (
                target.removeprefix(f"{REPOSITORY}/").partition("#")[0].split("/", 2)
            )
            assert (kind, branch) == ("blob", "main")
            assert (ROOT / path).is_file(), path


@pytest.mark.thorough
def test_links_of_packed_pages_stay_within_the_pack(packed: frozenset[str]) -> None:
    pages = [page for page in PAGES if page.relative_to(ROOT).as_posix() in packed]
    assert {page.name for page in pages} >= {"README.md", "models.md", "TokenMerge.md"}
    for page in pages:
        lost = {path for path, _ in local(page)} - packed
        assert not lost, f"{page.relative_to(ROOT)}: {lost}"


def test_the_readme_names_unpacked_folders_only_where_it_speaks_of_a_clone() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    parts = [part for part in readme.split("\n## ") if "In a clone of the repository" not in part]
    words = set(re.findall(r"\w+", re.sub(r"https://\S+", "", " ".join(parts))))
    assert len(parts) > 3
    assert not words & DEVELOPMENT


@pytest.mark.parametrize(
    ("page", "lines"), [("README.md", 110), ("docs/speed.md", 150), ("docs/quality.md", 150)]
)
def test_what_everyone_reads_is_short(page: str, lines: int) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= lines


def test_the_readme_clones_the_address_of_the_metadata() -> None:
    assert f"git clone --depth 1 {REPOSITORY}\n" in (ROOT / "README.md").read_text(encoding="utf-8")
