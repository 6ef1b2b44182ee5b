"""What each of our nodes did in a sampling run, and why it left something alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ....tome_core.settings import Settings

MOST_NAMES = 3
"""So many layers are named in one line."""

Key = TypeVar("Key")
Layers = set[object]
"""The text of each layer is its name. The set is empty where the whole run is meant."""

Lines = tuple[tuple[str, str], ...]
"""They are said at the end of a run: pairs of a node's name and a line of text."""


class Counts(NamedTuple):
    """How much the attention of a layer is reduced.

    Args:
        tokens: of its sequence.
        queries: that attention computes.
        keys: that a query reads.
        windows: whether keys near a query stay exact in a local window.
        shared: how another node's attention has a part in it, empty where there is none.
    """

    tokens: int
    queries: int
    keys: int
    windows: bool = False
    shared: str = ""


@dataclass
class RunReport:
    """Collects over the model calls of one run. Nodes with equal settings do the same.

    Args:
        reduced: for each node, layers by how much they are reduced.
        said: for each node, and None for all of them, layers by the reason that they are skipped.
        idle_reasons: what matters only where nothing was reduced.
    """

    reduced: dict[Settings, dict[Counts, Layers]] = field(default_factory=dict)
    said: dict[Settings | None, dict[str, Layers]] = field(default_factory=dict)
    idle_reasons: set[str] = field(default_factory=set)

    def reduce(self, settings: Settings, layer: object, counts: Counts) -> None:
        self.reduced.setdefault(settings, {}).setdefault(counts, set()).add(layer)

    def say(self, settings: Settings | None, reason: str, layer: object | None = None) -> None:
        """``layer`` was skipped for a reason; without one, something concerns the whole run.

        settings: of the node; None: all nodes are told.
        """
        layers = self.said.setdefault(settings, {}).setdefault(reason, set())
        if layer is not None:
            layers.add(layer)

    def sum_up(self, settings: Settings) -> list[str]:
        """What the node with these settings did so far, in two short lines; none where it did
        nothing.
        """
        reduced = _copy(self.reduced, settings)
        if not reduced:
            return []
        before = sum(counts.tokens**2 * len(layers) for counts, layers in reduced.items())
        after = sum(
            counts.queries * counts.keys * len(layers) for counts, layers in reduced.items()
        )
        done = set().union(*reduced.values())
        known = done.union(*_copy(self.said, settings).values())
        windows = ", local windows" if any(counts.windows for counts in reduced) else ""
        return [
            f"Reads {after / before:.0%} of the pairs",
            f"in {len(done)} of {len(known)} layers{windows}",
        ]

    def list_done(self, settings: Settings) -> list[str]:
        """The same in full, a line for layers that are reduced alike, and the part of the schedule
        where that is not all of it.
        """
        reduced = _copy(self.reduced, settings)
        lines = [_describe(counts, layers) for counts, layers in reduced.items()]
        if lines and not settings.percent_range.is_whole:
            lines.append(f"acts from {settings.percent_range} of the schedule")
        return lines

    def list_left(self, settings: Settings) -> list[str]:
        """What it left alone, and why."""
        own = _copy(self.said, settings)
        skipped = [(reason, layers) for reason, layers in own.items() if layers]
        noted = [
            *(reason for reason, layers in own.items() if not layers),
            *self.said.get(None, {}),
        ]
        return [
            *(f"{_count(many)} skipped: {why} ({_name(many)})" for why, many in skipped),
            *sorted({*noted}),
        ]

    def explain_idle(self, settings: Settings, otherwise: str) -> str:
        """Why nothing was reduced; empty where something was.

        otherwise: the reason where the run knows none.
        """
        if self.reduced.get(settings):
            return ""
        own = _copy(self.said, settings)
        reasons = sorted(own, key=lambda reason: not own[reason]) or [*self.said.get(None, {})]
        return reasons[0] if reasons else " and ".join(sorted(self.idle_reasons)) or otherwise


def _copy(table: dict[Any, dict[Key, Layers]], settings: Settings) -> dict[Key, Layers]:
    """A node's part of a table: calls on other devices go on meanwhile, and add to it."""
    return {key: layers.copy() for key, layers in table.get(settings, {}).copy().items()}


def _describe(counts: Counts, layers: Layers) -> str:
    tokens, queries, keys, _, shared = counts
    did = [f"computes {queries:,} queries"] if queries < tokens else []
    did += [f"reads {keys:,} keys"] if keys < tokens else []
    ending = f", {shared}" if shared else ""
    return f"{_count(layers)}: {tokens:,} tokens, attention {' and '.join(did)}{ending}"


def _count(layers: Layers) -> str:
    return f"{len(layers)} layer{'s' * (len(layers) != 1)}"


def _name(layers: Layers) -> str:
    names = sorted(map(str, layers))
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
