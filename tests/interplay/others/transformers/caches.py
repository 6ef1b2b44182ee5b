"""Nodes that leave out steps."""

from __future__ import annotations

from dataclasses import replace

from comfy_extras.nodes_easycache import EasyCacheNode, LazyCacheNode

from ...kinds import TRANSFORMERS
from ...other import Other, run_node

STEPS = 8
THRESHOLD = 3.0
"""This is the highest: it leaves out all steps between the percents, whatever our nodes change."""
OTHERS = tuple(
    Other(
        name,
        TRANSFORMERS,
        lambda model, node=node: run_node(node, model, THRESHOLD, 0.3, 0.8, False),
        change=lambda call: replace(call, steps=STEPS),
        skips_calls=True,
        most_error=5.0,  # a left out step repeats our error of the step before (4.1 was seen)
    )
    for name, node in (("EasyCache", EasyCacheNode), ("LazyCache", LazyCacheNode))
)
