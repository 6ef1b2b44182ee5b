"""The pictures that the model learns: drawn scenes, and crops of scikit-image's photographs.

Every picture has a caption that says all that is in it. Nothing is downloaded: only photographs
that ship inside scikit-image's wheel are used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from . import shapes
from .vocabulary import (
    COLOURS,
    PHOTOGRAPHS,
    SHAPES,
    SURFACES,
    TEXTURES,
    WORDS,
    choose,
    photograph,
    with_article,
)

Pixels = NDArray[np.uint8]

SIDE = 144
"""The pictures that training took crops from have this side."""
HELD_OUT_SEED = 1
"""Training had another one."""
OVERSAMPLING = 2
"""Shapes are drawn this much larger and shrunk, so that their edges are smooth."""


@dataclass(frozen=True)
class Scene:
    """pixels: (side, side, 3)."""

    caption: str
    pixels: Pixels


def draw(rng: Generator, side: int) -> Scene:
    """One picture: a photograph, a word, or one to three shapes, on some background."""
    kind = rng.random()
    if kind < 0.25:
        name = choose(rng, PHOTOGRAPHS)
        return Scene(f"a photo of {name}", np.asarray(photo_crop(rng, name, side)))
    ground, colours, canvas = _background(rng, side * OVERSAMPLING)
    if kind < 0.32:
        word, colour = choose(rng, WORDS), choose(rng, colours)
        _write(canvas, rng, word, COLOURS[colour])
        return Scene(f"the word {word} in {colour} on {ground}", shrink(canvas, side))
    things = []
    count = int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))
    for place in shapes.places(rng, count):
        things.append(_paste_shape(canvas, rng, colours, place))
    return Scene(f"{' and '.join(things)} on {ground}", shrink(canvas, side))


def list_held_out(count: int) -> list[str]:
    """Captions of pictures that were not used in training."""
    rng = np.random.default_rng(HELD_OUT_SEED)
    return [draw(rng, SIDE).caption for _ in range(count)]


def photo_crop(rng: Generator, name: str, side: int) -> Image.Image:
    """A square of at least three fifths of the photograph's shorter side."""
    photo = photograph(name)
    least = 0.7 if name in PHOTOGRAPHS else 0.4
    size = int(min(photo.size) * rng.uniform(least, 1.0))
    left = int(rng.integers(photo.width - size + 1))
    top = int(rng.integers(photo.height - size + 1))
    box = (left, top, left + size, top + size)
    return photo.resize((side, side), Image.Resampling.BOX, box=box)


def shrink(canvas: Image.Image, side: int) -> Pixels:
    """A canvas drawn with ``OVERSAMPLING``, as (side, side, 3)."""
    return np.asarray(canvas.resize((side, side), Image.Resampling.BOX))


def _background(rng: Generator, side: int) -> tuple[str, list[str], Image.Image]:
    """What it is, the colours that can be seen on it, and the picture."""
    if rng.random() < 0.3:
        surface = choose(rng, SURFACES)
        return surface, list(COLOURS), photo_crop(rng, surface, side)
    return coloured_ground(rng, side)


def coloured_ground(rng: Generator, side: int) -> tuple[str, list[str], Image.Image]:
    """One colour, or a gradient of it: as ``_background``."""
    name = choose(rng, COLOURS)
    others = [other for other in COLOURS if other != name]
    colour = np.array(COLOURS[name], float)
    if rng.random() < 0.5:
        canvas = Image.new("RGB", (side, side), COLOURS[name])
        return f"{with_article(name)} background", others, canvas
    angle = rng.uniform(0, 2 * np.pi)
    rows, columns = np.mgrid[0:side, 0:side] / (side - 1) - 0.5
    slope = (rows * np.sin(angle) + columns * np.cos(angle)) / np.sqrt(2) + 0.5  # 0 to 1
    end = colour * 0.25 if colour.mean() > 60 else colour + 130
    blend = colour + slope[..., None] * (end - colour)
    canvas = Image.fromarray(blend.clip(0, 255).astype(np.uint8))
    return f"{with_article(name)} gradient", others, canvas


def _paste_shape(
    canvas: Image.Image, rng: Generator, colours: list[str], place: tuple[float, float, float]
) -> str:
    """Draw one shape and say what it is."""
    shape, colour = choose(rng, SHAPES), choose(rng, colours)
    texture = str(rng.choice(TEXTURES, p=[0.55, 0.15, 0.15, 0.15]))
    mask = shapes.mask(canvas.width, shape, place, rng.uniform(-0.3, 0.3))
    canvas.paste(shapes.filling(canvas.width, texture, colour, rng), mask=mask)
    kind = colour if texture == "plain" else f"{texture} {colour}"
    return f"{with_article(kind)} {shape}"


def _write(canvas: Image.Image, rng: Generator, word: str, colour: tuple[int, int, int]) -> None:
    size = canvas.width * min(rng.uniform(1.1, 1.4) / len(word), 0.45)
    font = ImageFont.load_default(size=size)
    place = (canvas.width * rng.uniform(0.46, 0.54), canvas.height * rng.uniform(0.3, 0.7))
    pen = ImageDraw.Draw(canvas)
    pen.text(place, word, colour, font, anchor="mm", stroke_width=2)
