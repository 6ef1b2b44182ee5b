"""Tables of the documents: how they are written, and put in place of older ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def write_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """columns: a line feed in a heading becomes a space."""
    lines = [[column.replace("\n", " ") for column in columns], ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def replace_table(document: str, table: str, known_by: int | None = None) -> str:
    """``document`` with ``table`` in place of the one with the same columns.

    known_by: how many columns are compared, the first ones; all if it is None.
    Raises ValueError where the document has no such table, or several.
    """
    header = table.splitlines()[0]
    start = header if known_by is None else " | ".join(header.split(" | ")[:known_by]) + " |"
    rest = "" if known_by is None else ".*"
    found = rf"^{re.escape(start)}{rest}\n(\|.*\n)*"
    replaced, count = re.subn(found, lambda _: f"{table.strip()}\n", document, flags=re.M)
    if count != 1:
        raise ValueError(f"the document has {count} tables with the columns {start}, expected 1")
    return replaced
