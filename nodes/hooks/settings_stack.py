"""What several of our nodes on one model do together, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ...tome_core.settings import TARGETS, Settings, Target


@dataclass(frozen=True)
class AppliedNode:
    """One of our nodes on a MODEL.

    settings: what it reduces. node_id: of the node on the page, None in a script.
    """

    settings: Settings
    node_id: str | None = None


@dataclass(frozen=True)
class SettingsStack:
    """All our nodes on one MODEL, in their order.

    resolutions: downsampling of the model's self-attention layers, finest first. No two nodes
    reduce the same target of a layer in the same step.
    """

    resolutions: tuple[int, ...]
    nodes: tuple[AppliedNode, ...] = ()

    @cached_property
    def settings(self) -> tuple[Settings, ...]:
        return tuple(node.settings for node in self.nodes)

    @cached_property
    def targets(self) -> frozenset[Target]:
        """What is reduced in any layer of the model."""
        return frozenset().union(*map(self.find_all_targets, self.settings))

    @cached_property
    def weighs_keys(self) -> bool:
        """See ``Settings.weighs_keys``."""
        return any(settings.weighs_keys for settings in self.settings)

    @cached_property
    def has_windows(self) -> bool:
        """Whether any layer of a UNet may have a local window."""
        return any(settings.find_local_window(of_model=0) for settings in self.settings)

    def find_acting(
        self, active: Iterable[Settings], downsample: int
    ) -> dict[Settings, frozenset[Target]]:
        """What each active setting reduces in layers of one resolution, where it reduces any."""
        found = {each: each.find_targets(downsample, self.resolutions) for each in active}
        return {settings: targets for settings, targets in found.items() if targets}

    def find_all_targets(self, settings: Settings) -> frozenset[Target]:
        """What ``settings`` reduce in any layer of the model."""
        found = (settings.find_targets(each, self.resolutions) for each in self.resolutions)
        return frozenset().union(*found)

    def add(self, node: AppliedNode) -> SettingsStack:
        """Also reduce as ``node`` says.

        Raises ValueError where it would reduce tokens that earlier settings already reduce:
        a grid that was merged cannot be merged or downsampled again.
        """
        added = node.settings
        for earlier in self.settings:
            shared = self._find_shared_targets(earlier, added)
            if shared and earlier.percent_range.overlaps(added.percent_range):
                names = " and the ".join(target for target in TARGETS if target in shared)
                raise ValueError(
                    f"{added.node_name} would reduce the {names} "
                    f"from {added.percent_range} of the schedule, which a {earlier.node_name} "
                    f"before it already reduces from {earlier.percent_range}; use one of the two "
                    f"nodes, or, in the Advanced nodes, ranges (start_percent, end_percent) that "
                    f"do not overlap, or another target of Token Merge"
                )
        return SettingsStack(self.resolutions, (*self.nodes, node))

    def _find_shared_targets(self, one: Settings, other: Settings) -> frozenset[Target]:
        found = (
            one.find_targets(each, self.resolutions) & other.find_targets(each, self.resolutions)
            for each in self.resolutions
        )
        return frozenset().union(*found)

    def explain_idle(self, settings: Settings) -> str:
        """Why they reduce no layer of the model in any step, empty where they do."""
        if self.find_all_targets(settings):
            return ""
        if not self.resolutions:
            return "this model has no self-attention"
        return settings.explain_no_targets(self.resolutions)
