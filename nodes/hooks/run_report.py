"""What was reduced in a run and what was skipped and why, logged once at its end."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from dataclasses import dataclass, field

logger = logging.getLogger("token_merge")


@dataclass
class RunReport:
    """Collects over the model calls of one run. A layer's text is its name.

    Args:
        reduced: layers by (tokens, queries left, keys and values left).
        skipped: layers by reason.
        notes: what concerns the whole run.
        excuses: reasons that matter only where nothing was reduced.
    """

    reduced: dict[tuple[int, int, int], set[Hashable]] = field(default_factory=dict)
    skipped: dict[str, set[Hashable]] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    excuses: set[str] = field(default_factory=set)

    def reduce(self, layer: Hashable, tokens: int, queries: int, keys_and_values: int) -> None:
        self.reduced.setdefault((tokens, queries, keys_and_values), set()).add(layer)

    def skip(self, layer: Hashable, reason: str) -> None:
        self.skipped.setdefault(reason, set()).add(layer)

    def log(self, why_idle: str) -> None:
        """One line per outcome. why_idle: said where no layer was reduced and none skipped."""
        for (tokens, queries, keys_and_values), layers in self.reduced.items():
            logger.info(
                "Token Merge: %d layers reduced from %d tokens to %d queries, %d keys and values.",
                len(layers),
                tokens,
                queries,
                keys_and_values,
            )
        for reason, layers in self.skipped.items():
            names = ", ".join(sorted(map(str, layers)))
            logger.warning("Token Merge: %d layers skipped: %s (%s).", len(layers), reason, names)
        for note in sorted(self.notes):
            logger.warning("Token Merge: %s.", note)
        if not self.reduced:
            nothing = "Token Merge: no layer was reduced in this run"
            reasons = " and ".join(sorted(self.excuses)) or why_idle
            known = self.skipped or self.notes
            logger.warning("%s.", nothing if known else f"{nothing}: {reasons}")
