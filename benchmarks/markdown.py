"""Tables of the documents: how they are written, and put in place of older ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def write_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def replace_table(document: str, table: str, known_by: int) -> str:
    """``document`` with ``table`` in place of the one whose first ``known_by`` columns it has.

    Raises ValueError where the document has no such table, or several.
    """
    start = " | ".join(table.splitlines()[0].split(" | ")[:known_by]) + " |"
    found = rf"^{re.escape(start)}.*\n(\|.*\n)*"
    replaced, count = re.subn(found, lambda _: f"{table.strip()}\n", document, flags=re.M)
    if count != 1:
        raise ValueError(f"the document has {count} tables with the columns {start}, expected 1")
    return replaced
