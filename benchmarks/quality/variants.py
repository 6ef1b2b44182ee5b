"""What is compared with the plain model, the most telling first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

from comfy.model_patcher import ModelPatcher
from token_merge.tome_core import MergeSettings
from token_merge.tome_core.settings import Target

from .. import ours, peers
from ..settings import DOWNSAMPLE_2, MERGE_ALL, MERGE_QUERIES, Setting
from .candidates import Merging

Kind = Literal["ours", "peer", "candidate"]
Patch = Callable[[ModelPatcher], ModelPatcher]

FINEST = 1
"""The trained model has self-attention at full latent resolution."""
ALL: Target
KEYS: Target
QUERIES: Target
ALL, KEYS, QUERIES = get_args(Target)


@dataclass(frozen=True)
class Variant:
    """One way to run the model.

    kind: a candidate is what the nodes do not offer. published: (setting, name) under which
    benchmarks/results has its speed-up on SD 1.5, if it has. pictures: how many whole pictures are
    made at most, which takes long; single predictions are always made.
    """

    name: str
    kind: Kind
    patch: Patch
    published: tuple[str, str] | None = None
    pictures: int = 64


def variants() -> list[Variant]:
    """In the order of measuring: where time runs out, the last are missing."""
    half = MERGE_ALL.name
    down = DOWNSAMPLE_2.name
    return [
        Variant("Token Downsample ×2", "ours", _downsample(2), (down, "ours")),
        Variant("ToDo ×2", "peer", _todo(2), (down, "ToDo")),
        Variant("Token Merge 0.5", "ours", _merge(), (half, "ours, local")),
        Variant("tomesd 0.5", "peer", _tomesd(0.5), (half, "tomesd")),
        Variant("Token Downsample ×2, interleaved", "ours", _downsample(2, method="interleaved")),
        Variant("Token Downsample ×4", "ours", _downsample(4)),
        Variant("ToDo ×4", "peer", _todo(4)),
        Variant("Token Downsample ×4, interleaved", "ours", _downsample(4, method="interleaved")),
        Variant("Token Downsample ×2, nearest-exact", "ours", _nearest(2)),
        Variant("Token Downsample ×4, nearest-exact", "ours", _nearest(4)),
        Variant("HyperTile", "peer", _hypertile, ("", "HyperTile")),
        Variant("TomePatchModel 0.5", "peer", _tome_patch, (MERGE_QUERIES.name, "TomePatchModel")),
        Variant(
            "Token Merge 0.5, queries",
            "ours",
            _merge(target=QUERIES),
            (MERGE_QUERIES.name, "ours, local"),
        ),
        Variant("queries merged 0.5, Downsample ×2", "ours", _both(0.5, 2)),
        Variant("queries merged 0.5, Downsample ×1.41", "ours", _both(0.5, 1.41)),
        Variant("tomesd 0.7", "peer", _tomesd(0.7)),
        Variant("Token Merge 0.7", "ours", _merge(ratio=0.7)),
        Variant("Token Downsample ×3, interleaved", "ours", _downsample(3, method="interleaved")),
        Variant("Token Merge 0.5, keys and values", "ours", _merge(target=KEYS)),
        Variant("Token Merge 0.5, unsized", "ours", _merge(proportional_attention=False)),
        Variant("Token Merge 0.5, random", "ours", _merge(matching="random")),
        Variant("queries merged 0.7, Downsample ×4", "ours", _both(0.7, 4)),
        *_windows(),
        *_predictions_only(),
        *_candidates(),
    ]


def _windows() -> list[Variant]:
    """Which part of the schedule had better be left exact."""
    windows: dict[str, dict[str, Any]] = {
        "last 40 % exact": {"end_percent": 0.6},
        "first 40 % exact": {"start_percent": 0.4},
    }
    return [
        Variant(f"{name}, {words}", "ours", make(**window), pictures=16)
        for name, make in (
            ("Token Downsample ×4", partial(_downsample, 4)),
            ("Token Merge 0.5", _merge),
        )
        for words, window in windows.items()
    ]


def _predictions_only() -> list[Variant]:
    """Settings whose error per step is worth knowing, and cheap to know."""
    merges: dict[str, dict[str, Any]] = {
        "k-th": {"matching": "k-th"},
        "global": {"matching": "global"},
        "toma": {"matching": "toma"},
        "random, keys and values": {"matching": "random", "target": KEYS},
        "fixed destinations": {"random_destinations": False},
        "refresh_steps 1": {"refresh_steps": 1},
        "refresh_steps 4": {"refresh_steps": 4},
        "cross-attention too": {"merge_cross_attention": True},
        "MLP too": {"merge_mlp": True},
        "keys and values, unsized": {"target": KEYS, "proportional_attention": False},
    }
    downsamples: dict[str, tuple[float, str]] = {
        "×1.5": (1.5, "stratified"),
        "×1.5, nearest-exact": (1.5, "nearest-exact"),
        "×1.5, interleaved": (1.5, "interleaved"),
        "×2, area": (2, "area"),
        "×2, bilinear": (2, "bilinear"),
        "×3": (3, "stratified"),
        "×3, nearest-exact": (3, "nearest-exact"),
        "×4, area": (4, "area"),
        "×6": (6, "stratified"),
        "×6, interleaved": (6, "interleaved"),
    }
    return [
        *(
            Variant(f"Token Merge 0.5, {name}", "ours", _merge(**inputs), pictures=0)
            for name, inputs in merges.items()
        ),
        *(
            Variant(
                f"Token Downsample {name}", "ours", _downsample(factor, method=method), pictures=0
            )
            for name, (factor, method) in downsamples.items()
        ),
        Variant("queries merged 0.5, Downsample ×1.5", "ours", _both(0.5, 1.5), pictures=0),
        Variant("Token Merge 0.3", "ours", _merge(ratio=0.3), pictures=0),
        Variant("tomesd 0.3", "peer", _tomesd(0.3), pictures=0),
    ]


def _candidates() -> list[Variant]:
    """Means or chosen tokens, with and without proportional attention."""
    return [
        _candidate(ALL, pictures=16, sized=True),
        _candidate(ALL, chosen_keys=True),
        _candidate(ALL, chosen_keys=True, chosen_queries=True, sized=True),
        _candidate(KEYS),
        _candidate(KEYS, sized=True),
        _candidate(KEYS, chosen_keys=True),
        _candidate(KEYS, chosen_keys=True, chosen_values=True),
        _candidate(KEYS, chosen_keys=True, chosen_values=True, sized=True),
        _candidate(KEYS, 0.75, chosen_keys=True, sized=True),
        _candidate(QUERIES, chosen_queries=True),
    ]


def _candidate(target: Target, ratio: float = 0.5, pictures: int = 0, **how: bool) -> Variant:
    words = [word.replace("_", " ") for word, wanted in how.items() if wanted]
    what = f"candidate: merge {ratio}" + ("" if target == ALL else f", {target}")
    merging = Merging(MergeSettings(ratio, target=target), **how)
    return Variant(", ".join([what, *words]), "candidate", merging, pictures=pictures)


def _merge(ratio: float = 0.5, target: str = ALL, **inputs: Any) -> Patch:
    return partial(ours.token_merge, setting=Setting("", target, ratio=ratio), **inputs)


def _downsample(factor: float, **inputs: Any) -> Patch:
    return lambda model: ours.apply("TokenDownsample", model, factor=float(factor), **inputs)


def _nearest(factor: float) -> Patch:
    return _downsample(factor, method="nearest-exact")


def _both(ratio: float, factor: float) -> Patch:
    merge, downsample = _merge(ratio, QUERIES), _downsample(factor)
    return lambda model: downsample(merge(model))


def _tomesd(ratio: float) -> Patch:
    return partial(peers.tomesd, setting=Setting("", ALL, ratio=ratio), finest=FINEST)


def _todo(factor: int) -> Patch:
    return partial(peers.todo, setting=Setting("", KEYS, factor=factor), finest=FINEST)


def _hypertile(model: ModelPatcher) -> ModelPatcher:
    return peers.hypertile(model, FINEST)


def _tome_patch(model: ModelPatcher) -> ModelPatcher:
    return peers.comfyui_tome(model, 0.5)
