"""Shapes: where they stand, their outline, and what fills it."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageDraw

from .vocabulary import COLOURS


def places(rng: Generator, count: int) -> list[tuple[float, float, float]]:
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


def mask(side: int, shape: str, place: tuple[float, float, float], turn: float) -> Image.Image:
    """A shape's inside, as (side, side) of 0 or 255. turn: radians."""
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


def filling(side: int, texture: str, colour: str, rng: Generator) -> Image.Image:
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
