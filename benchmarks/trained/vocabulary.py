"""What captions can name, and the colours and photographs that the names stand for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import skimage.data
from numpy.random import Generator
from PIL import Image

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


@cache
def photograph(name: str) -> Image.Image:
    """A photograph of scikit-image's, in colour: one of ``PHOTOGRAPHS`` or ``SURFACES``."""
    return Image.fromarray(getattr(skimage.data, {**PHOTOGRAPHS, **SURFACES}[name])()).convert(
        "RGB"
    )


def choose(rng: Generator, names: Iterable[str]) -> str:
    return str(rng.choice(list(names)))


def with_article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"
