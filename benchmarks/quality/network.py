"""The two kinds of model, by the names that the command line has for them."""

from __future__ import annotations

from .flux import FluxShape
from .unet import UNetShape

Shape = UNetShape | FluxShape
"""How large a model is, and how it is built."""

SHAPES: dict[str, type[Shape]] = {shape.kind: shape for shape in (UNetShape, FluxShape)}
