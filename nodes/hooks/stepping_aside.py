"""What was reduced in a run and what was left alone and why, logged once at its end."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from dataclasses import dataclass, field

logger = logging.getLogger("token_merge")

Layer = Hashable
"""A layer or block of a model; its text is its name."""


@dataclass
class RunReport:
    """Collects over the model calls of one run.

    reduced: layers by (tokens, queries left, keys and values left). left_alone: layers by reason.
    notes: what is no matter of single layers. passed_over: reasons that matter only where nothing
    was reduced.
    """

    reduced: dict[tuple[int, int, int], set[Layer]] = field(default_factory=dict)
    left_alone: dict[str, set[Layer]] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    passed_over: set[str] = field(default_factory=set)

    def reduce(self, layer: Layer, tokens: int, queries: int, keys_and_values: int) -> None:
        self.reduced.setdefault((tokens, queries, keys_and_values), set()).add(layer)

    def step_aside(self, layer: Layer, reason: str) -> None:
        self.left_alone.setdefault(reason, set()).add(layer)

    def note(self, text: str) -> None:
        self.notes.add(text)

    def pass_over(self, reason: str) -> None:
        self.passed_over.add(reason)

    def log(self, why_idle: str) -> None:
        """One line per outcome. why_idle: said where no layer was reduced or stepped aside."""
        for (tokens, queries, keys_and_values), layers in self.reduced.items():
            logger.info(
                "Token Merge: %d layers reduced from %d tokens to %d queries, %d keys and values.",
                len(layers),
                tokens,
                queries,
                keys_and_values,
            )
        for reason, layers in self.left_alone.items():
            names = ", ".join(sorted(map(str, layers)))
            logger.warning(
                "Token Merge: %d layers left alone: %s (%s).", len(layers), reason, names
            )
        for note in sorted(self.notes):
            logger.warning("Token Merge: %s.", note)
        if not self.reduced:
            nothing = "Token Merge: no layer was reduced in this run"
            reasons = " and ".join(sorted(self.passed_over)) or why_idle
            known = self.left_alone or self.notes
            logger.warning("%s.", nothing if known else f"{nothing}: {reasons}")
