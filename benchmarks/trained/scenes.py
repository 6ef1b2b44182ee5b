"""The pictures that the model learns: drawn scenes, and crops of scikit-image's photographs.

Every picture has a caption that says all that is in it. Nothing is downloaded: only photographs
that ship inside scikit-image's wheel are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import skimage.data
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Pixels = NDArray[np.uint8]

PHOTOGRAPHS = {
    "astronaut": "astronaut",
    "cat": "chelsea",
    "coffee": "coffee",
    "rocket": "rocket",
    "coins": "coins",
}
SURFACES = {"bricks": "brick", "grass": "grass", "gravel": "gravel"}
COLOURS = {
    "red": (214, 40, 40),
    "orange": (245, 130, 32),
    "yellow": (250, 215, 50),
    "green": (40, 160, 70),
    "blue": (40, 90, 210),
    "purple": (130, 60, 170),
    "white": (245, 245, 245),
    "black": (20, 20, 24),
}
SHAPES = ("circle", "square", "triangle", "star", "ring")
TEXTURES = ("plain", "striped", "checked", "dotted")
WORDS = ("cat", "sun", "hello", "token", "merge")
OVERSAMPLING = 2
"""Shapes are drawn this much larger and shrunk, so that their edges are smooth."""


@dataclass(frozen=True)
class Scene:
    """pixels: (side, side, 3). mirrors: whether its mirror image fits the caption as well."""

    caption: str
    pixels: Pixels
    mirrors: bool


def draw(rng: Generator, side: int) -> Scene:
    """One picture: a photograph, a word, or one to three shapes, on some background."""
    kind = rng.random()
    if kind < 0.25:
        name = _choice(rng, PHOTOGRAPHS)
        return Scene(f"a photo of {name}", np.asarray(photo_crop(rng, name, side)), True)
    ground, colours, canvas = _background(rng, side * OVERSAMPLING)
    if kind < 0.32:
        word, colour = _choice(rng, WORDS), _choice(rng, colours)
        _write(canvas, rng, word, COLOURS[colour])
        return Scene(f"the word {word} in {colour} on {ground}", _shrunk(canvas, side), False)
    things = []
    count = int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))
    for place in _places(rng, count):
        things.append(_paste_shape(canvas, rng, colours, place))
    return Scene(f"{' and '.join(things)} on {ground}", _shrunk(canvas, side), True)


def photo_crop(rng: Generator, name: str, side: int) -> Image.Image:
    """A square of at least three fifths of the photograph's shorter side."""
    photo = photograph({**PHOTOGRAPHS, **SURFACES}[name])
    least = 0.7 if name in PHOTOGRAPHS else 0.4
    size = int(min(photo.size) * rng.uniform(least, 1.0))
    left = int(rng.integers(photo.width - size + 1))
    top = int(rng.integers(photo.height - size + 1))
    box = (left, top, left + size, top + size)
    return photo.resize((side, side), Image.Resampling.BOX, box=box)


@cache
def photograph(name: str) -> Image.Image:
    """A photograph of scikit-image's, in colour."""
    return Image.fromarray(getattr(skimage.data, name)()).convert("RGB")


def _choice(rng: Generator, names: Any) -> str:
    return str(rng.choice(list(names)))


def _a(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _shrunk(canvas: Image.Image, side: int) -> Pixels:
    return np.asarray(canvas.resize((side, side), Image.Resampling.BOX))


def _background(rng: Generator, side: int) -> tuple[str, list[str], Image.Image]:
    """What it is, the colours that can be seen on it, and the picture."""
    if rng.random() < 0.3:
        surface = _choice(rng, SURFACES)
        return surface, list(COLOURS), photo_crop(rng, surface, side)
    name = _choice(rng, COLOURS)
    others = [other for other in COLOURS if other != name]
    colour = np.array(COLOURS[name], float)
    if rng.random() < 0.5:
        canvas = Image.new("RGB", (side, side), COLOURS[name])
        return f"{_a(name)} background", others, canvas
    angle = rng.uniform(0, 2 * np.pi)
    rows, columns = np.mgrid[0:side, 0:side] / (side - 1) - 0.5
    slope = (rows * np.sin(angle) + columns * np.cos(angle)) / np.sqrt(2) + 0.5  # 0 to 1
    end = colour * 0.25 if colour.mean() > 60 else colour + 130
    blend = colour + slope[..., None] * (end - colour)
    canvas = Image.fromarray(blend.clip(0, 255).astype(np.uint8))
    return f"{_a(name)} gradient", others, canvas


def _places(rng: Generator, count: int) -> list[tuple[float, float, float]]:
    """(x, y, radius) of shapes that do not hide each other, as shares of the side."""
    if count == 1:
        radius = rng.uniform(0.24, 0.38)
        x, y = rng.uniform(radius, 1 - radius, 2)
        return [(float(x), float(y), float(radius))]
    quarters = rng.permutation(4)[:count]
    return [
        (
            float(0.27 + 0.46 * (quarter % 2) + rng.uniform(-0.04, 0.04)),
            float(0.27 + 0.46 * (quarter // 2) + rng.uniform(-0.04, 0.04)),
            float(rng.uniform(0.17, 0.23)),
        )
        for quarter in quarters
    ]


def _paste_shape(
    canvas: Image.Image, rng: Generator, colours: list[str], place: tuple[float, float, float]
) -> str:
    """Draw one shape and say what it is."""
    shape, colour = _choice(rng, SHAPES), _choice(rng, colours)
    texture = str(rng.choice(TEXTURES, p=[0.55, 0.15, 0.15, 0.15]))
    mask = _mask(canvas.width, shape, place, rng.uniform(-0.3, 0.3))
    canvas.paste(_filling(canvas.width, texture, colour, rng), mask=mask)
    kind = colour if texture == "plain" else f"{texture} {colour}"
    return f"{_a(kind)} {shape}"


def _mask(side: int, shape: str, place: tuple[float, float, float], turn: float) -> Image.Image:
    mask = Image.new("L", (side, side))
    pen = ImageDraw.Draw(mask)
    x, y, radius = (value * side for value in place)
    if shape in ("circle", "ring"):
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
        if shape == "ring":
            inner = radius * 0.55
            pen.ellipse((x - inner, y - inner, x + inner, y + inner), fill=0)
        return mask
    corners = {"square": 4, "triangle": 3, "star": 10}[shape]
    angles = turn - np.pi / 2 + np.arange(corners) * 2 * np.pi / corners
    angles = angles + np.pi / 4 if shape == "square" else angles
    reach = np.full(corners, radius)
    if shape == "star":
        reach[1::2] *= 0.45
    points = zip(x + reach * np.cos(angles), y + reach * np.sin(angles), strict=True)
    pen.polygon([(float(px), float(py)) for px, py in points], fill=255)
    return mask


def _filling(side: int, texture: str, colour: str, rng: Generator) -> Image.Image:
    """A colour, or a pattern of it and of white or, where it is light, black."""
    main = np.array(COLOURS[colour])
    second = np.array(COLOURS["black" if main.mean() > 150 else "white"])
    rows, columns = np.mgrid[0:side, 0:side] / side
    period = rng.uniform(0.09, 0.13)
    phase = rng.uniform(0, 1, 2)
    u, v = columns / period + phase[0], rows / period + phase[1]
    if texture == "striped":
        other = (u + v * rng.choice([-1, 0, 1])) % 1 > 0.5
    elif texture == "checked":
        other = (u % 1 > 0.5) != (v % 1 > 0.5)
    elif texture == "dotted":
        other = (u % 1 - 0.5) ** 2 + (v % 1 - 0.5) ** 2 < 0.07
    else:
        other = np.zeros((side, side), bool)
    return Image.fromarray(np.where(other[..., None], second, main).astype(np.uint8))


def _write(canvas: Image.Image, rng: Generator, word: str, colour: tuple[int, int, int]) -> None:
    size = canvas.width * min(rng.uniform(1.1, 1.4) / len(word), 0.45)
    font = ImageFont.load_default(size=size)
    place = (canvas.width * rng.uniform(0.46, 0.54), canvas.height * rng.uniform(0.3, 0.7))
    pen = ImageDraw.Draw(canvas)
    pen.text(place, word, colour, font, anchor="mm", stroke_width=2)
