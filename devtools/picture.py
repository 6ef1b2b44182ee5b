"""How far two pictures are apart, and several of them side by side with a label each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from skimage.metrics import peak_signal_noise_ratio

MARGIN = 12
TEXT_SIZE = 18
LINES = 2


def psnr(picture: Image.Image, reference: Image.Image) -> float:
    """Peak signal-to-noise ratio in dB; infinite where both are the same."""
    with np.errstate(divide="ignore"):
        return float(peak_signal_noise_ratio(np.asarray(reference), np.asarray(picture)))


def mean_difference(picture: Image.Image, reference: Image.Image) -> float:
    """Mean absolute difference of the channels, in values of 0 to 255."""
    return float(np.mean(np.asarray(differences(picture, reference, 1))))


def differences(picture: Image.Image, reference: Image.Image, gain: int) -> Image.Image:
    """Absolute differences of the channels, times ``gain``."""
    difference = np.asarray(picture, dtype=np.int64) - np.asarray(reference, dtype=np.int64)
    return Image.fromarray((gain * np.abs(difference)).clip(0, 255).astype(np.uint8))


def enlarged(picture: Image.Image, least: int) -> Image.Image:
    """At least ``least`` pixels wide, every pixel a square, so that nothing is smoothed over."""
    factor = -(-least // picture.width)
    return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.BOX)


def tiled(pictures: Sequence[Image.Image], columns: int, gap: int = 0) -> Image.Image:
    """Pictures of one size in rows, on white."""
    width, height = pictures[0].width + gap, pictures[0].height + gap
    rows = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (columns * width - gap, rows * height - gap), "white")
    for number, picture in enumerate(pictures):
        sheet.paste(picture, (number % columns * width, number // columns * height))
    return sheet


def save_side_by_side(pictures: Sequence[Image.Image], labels: Sequence[str], place: Path) -> None:
    """Write one picture: all of these in a row, each with its label of two lines below it."""
    width = sum(picture.width for picture in pictures) + MARGIN * (len(pictures) + 1)
    below = MARGIN + LINES * int(TEXT_SIZE * 1.4) + MARGIN
    height = MARGIN + max(picture.height for picture in pictures) + below
    sheet = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(TEXT_SIZE)
    left = MARGIN
    for picture, label in zip(pictures, labels, strict=True):
        sheet.paste(picture, (left, MARGIN))
        draw.multiline_text((left, MARGIN * 2 + picture.height), label, "black", font, spacing=6)
        left += picture.width + MARGIN
    place.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(place)
