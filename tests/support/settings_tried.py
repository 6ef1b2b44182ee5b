"""The inputs of our nodes that are tried on other devices, by what they are about."""

from __future__ import annotations

from typing import Any

Inputs = dict[str, dict[str, Any]]

MERGE: Inputs = {
    "default": {},
    "no window": {"local_window": "off"},
    "global": {"matching": "global"},
    "k-th": {"matching": "k-th"},
    "random": {"matching": "random"},
    "first of each cell": {"random_destinations": False},
    "queries": {"target": "queries"},
    "keys and values": {"target": "keys and values"},
    "unweighted": {"proportional_attention": False},
    "budget": {"max_tokens": 100},
}
ON_UNETS: Inputs = {
    "cross-attention and MLP": {"merge_cross_attention": True, "merge_mlp": True},
}
DOWNSAMPLE: Inputs = {
    "default": {},
    "stratified": {"method": "stratified", "local_window": "off"},
    "interleaved": {"local_window": "off"},
    "window": {"local_window": "8"},
    "stratified window": {"method": "stratified", "local_window": "8"},
    "nearest": {"method": "nearest"},
    "nearest-exact": {"method": "nearest-exact"},
    "bilinear": {"method": "bilinear"},
    "area": {"method": "area"},
    "max": {"method": "max"},
    "unweighted": {"proportional_attention": False},
    "not whole": {"factor": 2.75},
    "budget": {"max_tokens": 100},
}
