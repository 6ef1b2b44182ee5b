"""Pictures or clips in rows, each with a line of text below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from einops import rearrange
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

COLUMNS = 4
EVERY = 4
"""Of the frames of a clip, one of so many is shown."""
MARGIN = 8


def draw_sheet(
    pixels: Tensor, captions: Sequence[str], place: Path, columns: int | None = None
) -> None:
    """pixels: (B, 3, frames, H, W) in [0, 1]; a picture has one frame. A clip is as wide as all its
    shown frames.
    """
    rows = rearrange(pixels[:, :, ::EVERY], "b c f h w -> b h (f w) c")
    height, width = rows.shape[1:3]
    columns = columns or (COLUMNS if pixels.shape[2] == 1 else 1)
    size = max(10, width // 25)  # about 50 letters to a line
    line = 2 * size
    lines = -(-len(rows) // columns)
    across, down = width + MARGIN, height + line
    sheet = Image.new("RGB", (columns * across - MARGIN, lines * down), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size)
    for number, (row, caption) in enumerate(zip(rows, captions, strict=True)):
        left, top = number % columns * across, number // columns * down
        picture = Image.fromarray((row.numpy() * 255).round().astype(np.uint8))
        sheet.paste(picture, (left, top))
        shown = caption.replace("×", "x")  # which the font lacks
        pen.text((left + 2, top + height + line // 4), shown, "black", font)
    place.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(place, quality=90)
