"""A report as a picture of 1024 pixels' width, light on dark as ComfyUI's page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from .report import Report

WIDTH = 1024
MARGIN = 32
GAP = 10
"""Between two rows."""
TITLE_SIZE, TEXT_SIZE = 30, 19
BACKGROUND, TEXT, NAMES, LINE = "#1b1b1f", "#f2f2f2", "#a8b0bd", "#44444c"
FIGURES = (MARGIN, 330, 480, 640)
"""Where the columns of the measured values begin, in pixels."""
PAIRS = (MARGIN, 330)
"""Where those of the other rows begin."""


@dataclass(frozen=True)
class Row:
    """Texts side by side. columns: where each begins; colours: of each; size: in pixels."""

    texts: tuple[str, ...]
    columns: tuple[int, ...]
    colours: tuple[str, ...]
    size: int = TEXT_SIZE

    @property
    def lines(self) -> tuple[str, ...]:
        """Each text, broken where its column ends."""
        # The letter n is wider than most.
        letter = _font(self.size).getlength("n")
        ends = (*(start - MARGIN // 2 for start in self.columns[1:]), WIDTH - MARGIN)
        return tuple(
            textwrap.fill(text, int((end - start) / letter))
            for text, start, end in zip(self.texts, self.columns, ends, strict=True)
        )

    @property
    def height(self) -> int:
        most = max(text.count("\n") + 1 for text in self.lines)
        return round(most * self.size * 1.35) + GAP


def draw_table(report: Report) -> Tensor:
    """An IMAGE: (1, H, 1024, 3) float32 in [0, 1]."""
    sections = list(_list_sections(report))
    heights = [sum(row.height for row in rows) + MARGIN for rows in sections]
    image = Image.new("RGB", (WIDTH, MARGIN + sum(heights)), BACKGROUND)
    draw = ImageDraw.Draw(image)
    top = MARGIN
    for number, (rows, height) in enumerate(zip(sections, heights, strict=True)):
        if number:
            line = top - MARGIN // 2 - GAP // 2
            draw.line((MARGIN, line, WIDTH - MARGIN, line), LINE, width=1)
        _draw_rows(draw, rows, top)
        top += height
    return torch.from_numpy(np.asarray(image, dtype=np.float32) / 255)[None]


def _list_sections(report: Report) -> Iterator[list[Row]]:
    """Groups of rows with a line between them."""
    yield [Row((report.verdict,), (MARGIN,), (TEXT,), TITLE_SIZE)]
    header = Row(("", "plain", "patched", "patched against plain"), FIGURES, (NAMES,) * 4)
    figures = (
        Row((each.name, each.plain, each.patched, each.change), FIGURES, (NAMES, TEXT, TEXT, TEXT))
        for each in report.figures
    )
    yield [header, *figures]
    for pairs in (report.nodes, report.facts):
        yield [Row(pair, PAIRS, (NAMES, TEXT)) for pair in pairs]


def _draw_rows(draw: ImageDraw.ImageDraw, rows: list[Row], top: int) -> None:
    for row in rows:
        for text, left, colour in zip(row.lines, row.columns, row.colours, strict=True):
            draw.multiline_text((left, top), text, colour, _font(row.size), spacing=row.size * 0.35)
        top += row.height


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Pillow's own, which it can draw in any size."""
    return ImageFont.load_default(size)
