"""How what a clip shows moves from frame to frame: always at constant speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from PIL import Image

from .vocabulary import choose, photograph

FRAMES = 9
TIMES = tuple(frame / (FRAMES - 1) - 0.5 for frame in range(FRAMES))
"""Each frame has a time from -0.5 to 0.5, so that a scene is as it was laid out in the middle."""
DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
"""One step goes so far along (x, y)."""
ZOOMS = ("in", "out")


@dataclass(frozen=True)
class Motion:
    """words: as a caption has them, empty where nothing moves. x, y: shares of the frame's side
    that it moves during the clip. turn: degrees that it turns.
    """

    words: str
    x: float = 0.0
    y: float = 0.0
    turn: float = 0.0

    @staticmethod
    def draw(rng: Generator, turns: bool) -> Motion:
        """Of a shape. turns: whether one could see it turn."""
        turn = float(rng.uniform(40, 90) * rng.choice([-1, 1])) if turns else 0.0
        if rng.random() < 0.2:
            return Motion("", turn=turn)
        direction = choose(rng, DIRECTIONS)
        distance = rng.uniform(0.3, 0.5)
        x, y = DIRECTIONS[direction]
        return Motion(f" moving {direction}", float(x * distance), float(y * distance), turn)


@dataclass(frozen=True)
class Camera:
    """A view of a photograph. first, last: (left, top, side) in its pixels, of the first and the
    last frame.
    """

    words: str
    first: tuple[float, float, float]
    last: tuple[float, float, float]

    @staticmethod
    def draw(rng: Generator, name: str) -> Camera:
        """Still, sliding or zooming. name: of the photograph."""
        width, height = photograph(name).size
        whole = min(width, height)
        kind = rng.random()
        if kind < 0.25:
            side = whole * rng.uniform(0.6, 0.9)
            box = (rng.uniform(0, width - side), rng.uniform(0, height - side), side)
            return Camera("", box, box)
        if kind < 0.5:
            wide, near = whole * rng.uniform(0.85, 1.0), whole * rng.uniform(0.45, 0.6)
            left, top = rng.uniform(0, width - wide), rng.uniform(0, height - wide)
            middle = (wide - near) / 2
            boxes = [(left, top, wide), (left + middle, top + middle, near)]
            zoom = choose(rng, ZOOMS)
            first, last = boxes if zoom == "in" else boxes[::-1]
            return Camera(f" zooming {zoom}", first, last)
        direction = choose(rng, DIRECTIONS)
        side = whole * rng.uniform(0.6, 0.72)
        distance = side * rng.uniform(0.25, 0.38)
        # What is seen slides against the view. The signs leave room for the first view's moves.
        x, y = (-step * distance for step in DIRECTIONS[direction])
        left = rng.uniform(max(0, -x), width - side - max(0, x))
        top = rng.uniform(max(0, -y), height - side - max(0, y))
        return Camera(f" sliding {direction}", (left, top, side), (left + x, top + y, side))

    def film(self, name: str, side: int) -> list[Image.Image]:
        """``FRAMES`` pictures of (side, side)."""
        photo = photograph(name)
        first, last = np.array(self.first), np.array(self.last)
        frames = []
        for time in TIMES:
            left, top, size = (float(value) for value in first + (time + 0.5) * (last - first))
            box = (left, top, left + size, top + size)
            frames.append(photo.resize((side, side), Image.Resampling.BILINEAR, box=box))
        return frames
