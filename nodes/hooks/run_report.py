"""What each of our nodes did in a sampling run, and why it left something alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...tome_core.settings import Settings

MOST_NAMES = 3
"""Of layers in one line."""


@dataclass(frozen=True)
class Outcome:
    """Lines of text. done: what was reduced. left: what was not, and why."""

    done: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class RunSummary:
    """What was said at the end of a run. lines: pairs of a node's name and a line of text."""

    lines: tuple[tuple[str, str], ...]


@dataclass
class NodeReport:
    """What one node did. A layer's text is its name.

    Args:
        reduced: layers by (tokens, queries that attention computes, keys that a query reads).
        skipped: layers by reason.
        notes: what concerns the node in the whole run.
    """

    reduced: dict[tuple[int, int, int], set[object]] = field(default_factory=dict)
    skipped: dict[str, set[object]] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)


@dataclass
class RunReport:
    """Collects over the model calls of one run.

    Args:
        nodes: by settings. Nodes with equal settings do the same.
        notes: what concerns all nodes.
        excuses: reasons that matter only where nothing was reduced.
    """

    nodes: dict[Settings, NodeReport] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    excuses: set[str] = field(default_factory=set)

    def of(self, settings: Settings) -> NodeReport:
        return self.nodes.setdefault(settings, NodeReport())

    def reduce(
        self, settings: Settings, layer: object, tokens: int, queries: int, keys: int
    ) -> None:
        self.of(settings).reduced.setdefault((tokens, queries, keys), set()).add(layer)

    def skip(self, several: Iterable[Settings], layer: object, reason: str) -> None:
        for settings in several:
            self.of(settings).skipped.setdefault(reason, set()).add(layer)

    def describe(self, settings: Settings) -> Outcome:
        """What the node with these settings did so far.

        Copies are read: calls on other devices go on meanwhile, and add to the report.
        """
        node = self.of(settings)
        reduced = [(counts, layers.copy()) for counts, layers in node.reduced.copy().items()]
        skipped = [(reason, layers.copy()) for reason, layers in node.skipped.copy().items()]
        return Outcome(
            done=tuple(_describe(*counts, layers) for counts, layers in reduced),
            left=(
                *(f"{_count(many)} skipped: {why} ({_name(many)})" for why, many in skipped),
                *sorted(node.notes | self.notes),
            ),
        )

    def explain_idle(self, settings: Settings, otherwise: str) -> str:
        """Why nothing was reduced; empty where something was, or where ``describe`` says why.

        otherwise: the reason where the run knows none.
        """
        node = self.of(settings)
        if node.reduced:
            return ""
        nothing = "no layer was reduced in this run"
        if node.skipped or node.notes or self.notes:
            return nothing
        return f"{nothing}: {' and '.join(sorted(self.excuses)) or otherwise}"


def _describe(tokens: int, queries: int, keys: int, layers: set[object]) -> str:
    did = [f"computes {queries:,} queries"] if queries < tokens else []
    did += [f"reads {keys:,} keys"] if keys < tokens else []
    return f"{_count(layers)}: {tokens:,} tokens, attention {' and '.join(did)}"


def _count(layers: set[object]) -> str:
    return f"{len(layers)} layer{'s' * (len(layers) != 1)}"


def _name(layers: set[object]) -> str:
    names = sorted(map(str, layers))
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
