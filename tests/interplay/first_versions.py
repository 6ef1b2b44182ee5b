"""What an older ComfyUI lacks for a row of the table, by the row's name."""

from __future__ import annotations

from support.comfyui_version import leave_out_before

from .kinds import Kind
from .other import Other

FIRST_VERSIONS = {
    "CFGNorm before guidance": "0.24.1",
    "Dual Model CFG Guider": "0.24.1",
    "Flux KV Cache": "0.18.2",
    "HyperTile on Flux": "0.18.2",
    "Load Hypernetwork on Flux": "0.18.2",
    "TomePatchModel on Flux": "0.18.2",
    "a clone for another GPU (deepclone_multigpu)": "0.24.1",
    "a clone with modules of its own (force_deepcopy)": "0.26.0",
    "a patch behind each block (as Uni3C's)": "0.30.0",
}
"""This is the first ComfyUI that ``devtools matrix`` tests in which the node does what the row
says. Rows that are not named are the same in all of them."""


def leave_out_if_lacking(kind: Kind, other: Other) -> None:
    """End the test here where this ComfyUI is older than the row needs."""
    for name in (other.name, f"{other.name} on {kind}"):
        if name in FIRST_VERSIONS:
            leave_out_before(FIRST_VERSIONS[name], name)
