"""Everything that is measured against the unpatched model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from comfy.model_patcher import ModelPatcher

from .. import ours, peers, settings
from ..settings import DOWNSAMPLE, MERGE, MERGE_ALL, MERGE_QUERIES, Setting
from . import limits, windows
from .diffusion_transformers import Clip
from .results import Measured
from .windows import WINDOWS, WINDOWS_2, WINDOWS_MERGE

Kind = Literal["unpatched", "limit", "ours", "peer"]
Patch = Callable[[ModelPatcher], ModelPatcher]


@dataclass(frozen=True)
class Variant:
    """One way to run a model. setting: what it is compared within; None where its token counts are
    its own.
    """

    name: str
    kind: Kind
    patch: Patch
    setting: Setting | None = None

    def start(self) -> Measured:
        """Without a number yet."""
        return Measured(self.name, self.kind, self.setting.name if self.setting else None)


UNPATCHED = Variant("unpatched", "unpatched", ModelPatcher.clone)


def list_for_unet(finest: int) -> list[Variant]:
    """The unpatched model, then each setting with its limit, ours and the peers.

    finest: downsampling of the finest resolution at which the model has self-attention.
    """

    def limit(setting: Setting) -> Variant:
        cut = partial(limits.with_tokens_cut_off, setting=setting, finest=finest)
        return Variant("limit", "limit", cut, setting)

    def merge(setting: Setting) -> Variant:
        return Variant("ours", "ours", partial(ours.token_merge, setting=setting), setting)

    found = [UNPATCHED]
    for setting in (MERGE, MERGE_ALL):
        found += [limit(setting), merge(setting)]
    tomesd = partial(peers.tomesd, setting=MERGE_ALL, finest=finest)
    found += [Variant("tomesd", "peer", tomesd, MERGE_ALL), merge(MERGE_QUERIES)]
    if finest == 1:  # it reduces no layer of a model without self-attention at full resolution
        tome = partial(peers.comfyui_tome, ratio=settings.RATIO)
        found.append(Variant("TomePatchModel", "peer", tome, MERGE_QUERIES))
    downsample = partial(ours.token_downsample, setting=DOWNSAMPLE)
    todo = partial(peers.todo, setting=DOWNSAMPLE, finest=finest)
    return [
        *found,
        limit(DOWNSAMPLE),
        *(
            Variant(f"ours, {method}", "ours", partial(downsample, method=method), DOWNSAMPLE)
            for method in ("stratified", "interleaved")
        ),
        Variant("ToDo", "peer", todo, DOWNSAMPLE),
        Variant("ComfyUI's HyperTile", "peer", partial(peers.hypertile, finest=finest)),
    ]


def list_for_transformer(clip: Clip) -> list[Variant]:
    """The unpatched model, then both nodes without and with local windows, each with its limit
    unless calls are long.
    """
    found = [UNPATCHED]
    for setting, node in (
        (MERGE, partial(ours.token_merge, local_window="off")),
        (MERGE_ALL, ours.token_merge),
        # Local windows have other token counts than the limit.
        (DOWNSAMPLE, partial(ours.token_downsample, method="stratified", local_window="off")),
    ):
        cut = partial(limits.with_picture_cut_off, setting=setting, stream=clip.stream)
        found.append(Variant("limit", "limit", cut, setting))
        found.append(Variant("ours", "ours", partial(node, setting=setting), setting))
    for setting in WINDOWS:
        if setting in (WINDOWS_2, WINDOWS_MERGE):
            cut_out = partial(windows.with_tiles_cut_out, setting=setting, stream=clip.stream)
            found.append(Variant("limit", "limit", cut_out, setting))
        of_windows = partial(windows.with_windows, setting=setting)
        found.append(Variant("ours", "ours", of_windows, setting))
    return [each for each in found if not (clip.is_long and each.kind == "limit")]
