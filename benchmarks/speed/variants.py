"""Everything that is measured against the plain model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from comfy.model_patcher import ModelPatcher

from .. import ours, peers, settings
from ..settings import Setting
from . import limits

Kind = Literal["plain", "limit", "ours", "peer"]


@dataclass(frozen=True)
class Variant:
    """One way to run a model.

    setting: what it is compared within; None where its token counts are its own. tier: 1 is
    measured always, 2 where a call is cheap, 3 when asked for. steps: model calls in one
    measurement, for what is kept over steps.
    """

    name: str
    kind: Kind
    patch: Callable[[ModelPatcher], ModelPatcher]
    setting: Setting | None = None
    tier: int = 1
    steps: int = 1

    @property
    def key(self) -> str:
        return f"{self.setting.name if self.setting else 'all tokens'}: {self.name}"


PLAIN = Variant("plain", "plain", ModelPatcher.clone)


def list_variants(finest: int, most_tier: int = 3) -> list[Variant]:
    """Plain, then each setting with its limit, ours and the peers.

    finest: downsampling of the finest resolution at which the model has self-attention.
    """
    found = [PLAIN, *_merging(finest), *_downsampling(finest)]
    found.append(Variant("HyperTile", "peer", partial(peers.hypertile, finest=finest), tier=2))
    return [variant for variant in found if variant.tier <= most_tier]


def _merging(finest: int) -> list[Variant]:
    found: list[Variant] = []
    first, *others = ours.list_options("matching")
    found.append(_limit(settings.MERGE, finest, 1))
    found.append(_ours(f"ours, {first}", settings.MERGE, 1))
    for setting in (settings.MERGE_ALL, settings.MERGE_KEYS, settings.MERGE_QUERIES):
        main = setting is settings.MERGE_ALL
        tier = 1 if main else 3
        found.append(_limit(setting, finest, tier))
        ours_first = tier if setting is not settings.MERGE_QUERIES else 2
        found.append(_ours(f"ours, {first}", setting, ours_first, matching=first))
        if main:
            for steps in (1, 4):
                name = f"ours, {first}, refresh_steps {steps}"
                kept = {"matching": first, "refresh_steps": steps}
                found.append(_ours(name, setting, 3, steps, **kept))
        found += [_ours(f"ours, {other}", setting, 3, matching=other) for other in others]
        tomesd = partial(peers.tomesd, setting=setting, finest=finest)
        found.append(Variant("tomesd", "peer", tomesd, setting, tier))
    if finest == 1:  # it reduces no layer of a model without self-attention at full resolution
        tome = partial(peers.comfyui_tome, ratio=settings.RATIO)
        found.append(Variant("TomePatchModel", "peer", tome, settings.MERGE_QUERIES, 2))
    return found


def _downsampling(finest: int) -> list[Variant]:
    found: list[Variant] = []
    for setting, tier in ((settings.DOWNSAMPLE_2, 1), (settings.DOWNSAMPLE_4, 3)):
        todo = partial(peers.todo, setting=setting, finest=finest)
        node = partial(ours.token_downsample, setting=setting, method="stratified")
        interleaved = partial(node, method="interleaved")
        found += [
            _limit(setting, finest, tier),
            Variant("ours", "ours", node, setting, tier),
            Variant("ours, interleaved", "ours", interleaved, setting, tier),
            Variant("ToDo", "peer", todo, setting, tier),
        ]
    return found


def _limit(setting: Setting, finest: int, tier: int) -> Variant:
    patch = partial(limits.with_tokens_cut_off, setting=setting, finest=finest)
    return Variant("limit", "limit", patch, setting, tier)


def _ours(name: str, setting: Setting, tier: int, steps: int = 1, **inputs: object) -> Variant:
    patch = partial(ours.token_merge, setting=setting, **inputs)
    return Variant(name, "ours", patch, setting, tier, steps)
