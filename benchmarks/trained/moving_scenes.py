"""The clips that the video model learns: the scenes of ``scenes.py``, in motion.

Shapes move and turn, and the photographs and surfaces slide or zoom. Words are left out. Every
caption says what moves, and which way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image

from . import scenes, shapes
from .motion import FRAMES, TIMES, Camera, Motion
from .vocabulary import COLOURS, PHOTOGRAPHS, SHAPES, SURFACES, TEXTURES, choose, with_article

ROUND = ("circle", "ring")
SIDEWAYS = ("left", "right")


@dataclass(frozen=True)
class MovingScene:
    """pixels: (FRAMES, side, side, 3) uint8. mirrors: whether its mirror image fits the caption."""

    caption: str
    pixels: NDArray[np.uint8]

    @property
    def mirrors(self) -> bool:
        return not any(word in SIDEWAYS for word in self.caption.split())


@dataclass(frozen=True)
class Thing:
    """A shape that moves. sprite: RGBA, the shape in its middle. middle: (x, y) of it in the
    middle of the clip, as shares of the side.
    """

    words: str
    sprite: Image.Image
    middle: tuple[float, float]
    motion: Motion

    def paste(self, canvas: Image.Image, time: float) -> None:
        """Draw it as it is at ``time``. canvas: as large as the sprite."""
        turned = self.sprite.rotate(-time * self.motion.turn, Image.Resampling.BILINEAR)
        side = canvas.width
        left = round((self.middle[0] - 0.5 + time * self.motion.x) * side)
        top = round((self.middle[1] - 0.5 + time * self.motion.y) * side)
        canvas.paste(turned, (left, top), turned)


def draw(rng: Generator, side: int) -> MovingScene:
    """One clip: a photograph, or one to three shapes on some background."""
    if rng.random() < 0.25:
        name = choose(rng, PHOTOGRAPHS)
        camera = Camera.draw(rng, name)
        return MovingScene(f"a photo of {name}{camera.words}", _stack(camera.film(name, side)))
    large = side * scenes.OVERSAMPLING
    ground, colours, canvases = _draw_ground(rng, large)
    count = int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))
    things = [_draw_thing(rng, large, colours, place) for place in shapes.places(rng, count)]
    for time, canvas in zip(TIMES, canvases, strict=True):
        for thing in things:
            thing.paste(canvas, time)
    words = " and ".join(thing.words for thing in things)
    return MovingScene(f"{words} on {ground}", np.stack([scenes.shrink(c, side) for c in canvases]))


def _draw_ground(rng: Generator, side: int) -> tuple[str, list[str], list[Image.Image]]:
    """What it is, the colours that can be seen on it, and a canvas for each frame."""
    if rng.random() < 0.3:
        surface = choose(rng, SURFACES)
        camera = Camera.draw(rng, surface)
        return f"{surface}{camera.words}", list(COLOURS), camera.film(surface, side)
    ground, colours, canvas = scenes.coloured_ground(rng, side)
    return ground, colours, [canvas.copy() for _ in range(FRAMES)]


def _draw_thing(
    rng: Generator, side: int, colours: list[str], place: tuple[float, float, float]
) -> Thing:
    shape, colour = choose(rng, SHAPES), choose(rng, colours)
    texture = str(rng.choice(TEXTURES, p=[0.55, 0.15, 0.15, 0.15]))
    turns = (shape not in ROUND or texture != "plain") and rng.random() < 0.4
    motion = Motion.draw(rng, turns)
    x, y, radius = place
    sprite = shapes.filling(side, texture, colour, rng)
    sprite.putalpha(shapes.mask(side, shape, (0.5, 0.5, radius), rng.uniform(-0.3, 0.3)))
    words = [*(["turning"] if turns else []), *([] if texture == "plain" else [texture]), colour]
    return Thing(f"{with_article(' '.join(words))} {shape}{motion.words}", sprite, (x, y), motion)


def _stack(frames: list[Image.Image]) -> NDArray[np.uint8]:
    return np.stack([np.asarray(frame) for frame in frames])
