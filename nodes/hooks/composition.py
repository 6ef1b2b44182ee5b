"""What several of our nodes on one model do together, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...tome_core.settings import DownsampleSettings, MergeSettings, Settings

Role = Literal["queries", "keys_and_values", "cross_attention", "mlp"]

ROLE_NAMES: dict[Role, str] = {
    "queries": "queries",
    "keys_and_values": "keys and values",
    "cross_attention": "queries of cross-attention",
    "mlp": "tokens of the MLP",
}


@dataclass(frozen=True)
class Reduction:
    """All settings on one MODEL and where they may act; travels in transformer_options.

    resolutions: downsampling of the model's self-attention layers, finest first. settings: in the
    order of the nodes; no two of them reduce the same tokens of a layer in the same step.
    """

    resolutions: tuple[int, ...]
    settings: tuple[Settings, ...] = ()

    def roles(self, settings: Settings, downsample: int) -> frozenset[Role]:
        """What ``settings`` reduce in layers of this resolution."""
        if isinstance(settings, DownsampleSettings):
            budgeted = settings.max_tokens > 0 and downsample in self.resolutions[:2]
            fewer_frames = settings.temporal_factor > 1
            acts = budgeted or fewer_frames or self.factor(settings, downsample) > 1
            return frozenset({"keys_and_values"} if acts else ())
        if downsample > (settings.max_downsample or self.resolutions[0]):
            return frozenset()
        return frozenset(_merge_roles(settings))

    def factor(self, settings: Settings, downsample: int) -> float:
        """The factor that ``settings`` give to layers of this resolution.

        1 beyond the second resolution, and where settings merge.
        """
        if isinstance(settings, MergeSettings):
            return 1.0
        factors = dict(zip(self.resolutions, settings.factors, strict=False))
        return factors.get(downsample, 1.0)

    def with_settings(self, added: Settings) -> Reduction:
        """Also reduce as ``added`` says.

        Raises ValueError where it would reduce tokens that earlier settings already reduce:
        a grid that was merged cannot be merged or downsampled again.
        """
        for earlier in self.settings:
            shared = self._shared_roles(earlier, added)
            if shared and earlier.window.overlaps(added.window):
                names = " and the ".join(ROLE_NAMES[role] for role in ROLE_NAMES if role in shared)
                raise ValueError(
                    f"{_node_name(added)} would reduce the {names} "
                    f"from {added.window} of the schedule, which a {_node_name(earlier)} before "
                    f"it already reduces from {earlier.window}; expected windows "
                    f"(start_percent, end_percent) that do not overlap, or another target"
                )
        return Reduction(self.resolutions, (*self.settings, added))

    def _shared_roles(self, one: Settings, other: Settings) -> frozenset[Role]:
        return frozenset().union(
            *(
                self.roles(one, downsample) & self.roles(other, downsample)
                for downsample in self.resolutions
            )
        )

    def why_idle(self) -> str | None:
        """Why no layer of this model can ever be reduced, or None where one can."""
        if any(
            self.roles(settings, downsample)
            for settings in self.settings
            for downsample in self.resolutions
        ):
            return None
        if not self.resolutions:
            return "this model has no self-attention"
        finest = self.resolutions[0]
        return (
            f"the finest self-attention of this model is downsampled {finest}x, "
            f"so max_downsample has to be auto or at least {finest}, "
            f"or factor or factor_level_2 above 1"
        )


def _merge_roles(settings: MergeSettings) -> list[Role]:
    roles: list[Role] = []
    if settings.merges_queries:
        roles.append("queries")
    if settings.merges_keys_and_values:
        roles.append("keys_and_values")
    if settings.merge_cross_attention:
        roles.append("cross_attention")
    if settings.merge_mlp:
        roles.append("mlp")
    return roles


def _node_name(settings: Settings) -> str:
    return "Token Merge" if isinstance(settings, MergeSettings) else "Token Downsample"
