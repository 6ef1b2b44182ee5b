"""Pictures and clips in rows: the same seeds under every variant, samples with their captions."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch.nn.functional as F
from einops import rearrange, repeat
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

GAP = 4
LABEL_WIDTH = 200
CAPTION_HEIGHT = 46


@dataclass(frozen=True)
class SheetRow:
    """pictures: (count, 3, H, W) in [0, 1]."""

    label: str
    pictures: Tensor


def contact_sheet(rows: Sequence[SheetRow], place: Path) -> Path:
    """One row a variant, one column a seed, all of the same size."""
    side = rows[0].pictures.shape[-1]
    columns = min(len(row.pictures) for row in rows)
    size = (LABEL_WIDTH + columns * (side + GAP), len(rows) * (side + GAP))
    sheet = Image.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(14)
    for number, row in enumerate(rows):
        top = number * (side + GAP)
        words = row.label.replace("×", "x")  # the font has no such sign
        label = "\n".join(textwrap.fill(line, 26) for line in words.splitlines())
        pen.multiline_text((6, top + side // 2), label, "black", font, anchor="lm")
        for column, picture in enumerate(row.pictures[:columns]):
            sheet.paste(_image(picture), (LABEL_WIDTH + column * (side + GAP), top))
    return _save(sheet, place)


def sample_sheet(pictures: Tensor, captions: Sequence[str], place: Path, columns: int = 8) -> Path:
    """Every picture above its caption. (count, 3, H, W)."""
    return _captioned(pictures, captions, place, columns)


def clip_sheet(clips: Tensor, captions: Sequence[str], place: Path, columns: int = 2) -> Path:
    """Every clip as a row of frames, twice as large, above its caption. (count, 3, F, H, W)."""
    large = repeat(clips, "b c f h w -> b c f (h 2) (w 2)")
    strips = rearrange(F.pad(large, (0, GAP), value=1.0), "b c f h w -> b c h (f w)")
    return _captioned(strips, captions, place, columns)


def _captioned(pictures: Tensor, captions: Sequence[str], place: Path, columns: int) -> Path:
    """pictures: (count, 3, H, W) in [0, 1]."""
    height, width = pictures.shape[-2:]
    cell = (width + GAP, height + CAPTION_HEIGHT)
    lines = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (columns * cell[0], lines * cell[1]), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(10)
    for number, (picture, caption) in enumerate(zip(pictures, captions, strict=True)):
        left, top = number % columns * cell[0], number // columns * cell[1]
        sheet.paste(_image(picture), (left, top))
        text = "\n".join(textwrap.wrap(caption, width // 5)[:4])
        pen.multiline_text((left, top + height + 1), text, "black", font, spacing=0)
    return _save(sheet, place)


def _image(picture: Tensor) -> Image.Image:
    pixels = (picture * 255).round().byte().permute(1, 2, 0).cpu().numpy()
    return Image.fromarray(np.ascontiguousarray(pixels))


def _save(sheet: Image.Image, place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(place, optimize=True)
    return place
