"""Compiles our kernels for GPUs that are not here, as their callers launch them: a line for each.

A program of its own: Triton is told before it is imported whether to compile or to interpret. Its
arguments are cases, with commas between them, or "all"; and compute capabilities of NVIDIA's GPUs,
89 for 8.9. Each line that it prints is a JSON object: the capability, the case, and what
``compiled_code`` finds.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from .compiled_code import describe

ROOT = Path(__file__).parents[2]

KERNELS = {
    "attention_triton": ("attend", "attend_merged"),
    "merging_triton": ("find_nearest", "number_slots", "average_slots"),
    "queries": ("merge_strips",),
    "rounding_triton": ("round_and_scale",),
}


class Driver:
    """Stands in for that of a GPU, where there is none: it launches nothing."""

    def __init__(self, capability: int) -> None:
        self.capability = capability

    def get_current_device(self) -> int:
        return self.capability  # each keeps compiled kernels of its own

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.capability, 32)


class Compiler:
    """Stands in for a kernel, and compiles what a launch with the same arguments would.

    made: all that it compiled, by their hashes.
    """

    def __init__(self, kernel: Any, made: dict[str, Any]) -> None:
        self.kernel, self.made = kernel, made

    def __getitem__(self, grid: Any) -> Any:
        def compile(*args: Any, **options: Any) -> None:
            compiled = self.kernel.warmup(*args, grid=grid, **options)
            self.made[compiled.hash] = compiled

        return compile


def attend_windows(
    dtype: torch.dtype,
    channels: int,
    merges: bool,
    side: int,
    before: int = 512,
    precision: Any = "exact",
) -> None:
    """As a transformer with ``before`` tokens of a prompt and side × side of the picture."""
    from token_merge.nodes.kernels import windows
    from token_merge.tome_core import DownsampleSettings, Draws, MergeSettings, Stream, TokenGrid

    from .layers import LayerTokens, kernels_of_windows, plan_layer

    draws, metric = Draws((0,), torch.device("cpu")), torch.zeros(1, side**2, 8)
    stream = Stream(TokenGrid(side, side), before=before)
    layer = LayerTokens(stream, lambda: metric, draws, local_window=16)
    with kernels_of_windows():
        plan = plan_layer(MergeSettings() if merges else DownsampleSettings(), layer)
    q, k, v = torch.zeros(3, 1, 2, stream.length, channels, dtype=dtype)
    windows.attend(replace(plan, precision=precision), q, k, v, None, channels**-0.5)


def attend_weighed(channels: int, side: int) -> None:
    from token_merge.nodes.kernels import weighed_keys

    q = torch.zeros(2, 2, side**2, channels, dtype=torch.float16)
    k, v = torch.zeros(2, 2, 2, side**2 // 4, channels, dtype=torch.float16)
    weighed_keys.attend_weighed(q, k, v, torch.ones(2, k.shape[2]), channels**-0.5)


def merge_tokens(side: int) -> None:
    from token_merge.nodes.kernels import merging
    from token_merge.tome_core import Draws, TokenGrid, choose_strided

    grid, draws = TokenGrid(side, side), Draws((0,), torch.device("cpu"))
    x = torch.zeros(2, grid.tokens, 320, dtype=torch.float16)
    dst = choose_strided(grid, 2, 2, draws, draws.device)
    merging.match_local(x, grid, dst, grid.tokens // 5).merge(x)


def merge_queries(side: int) -> None:
    from token_merge.nodes.kernels import queries
    from token_merge.tome_core.windows import Strips

    numbers = torch.arange(5 * side).view(-1, 80)
    metric = torch.zeros(1, numbers.numel(), 120, dtype=torch.float16)
    queries.merge_queries(metric, Strips(numbers, numbers[:, :20], side))


CASES = {
    "windows 128": partial(attend_windows, torch.bfloat16, 128, False),
    "merged 128": partial(attend_windows, torch.bfloat16, 128, True),
    "weighed 128": partial(attend_weighed, 128),
    "windows 128 professional": partial(attend_windows, torch.bfloat16, 128, False),
    "windows 120": partial(attend_windows, torch.bfloat16, 120, False),
    "windows 64": partial(attend_windows, torch.float16, 64, False),
    "merged 64": partial(attend_windows, torch.float16, 64, True),
    "weighed 64": partial(attend_weighed, 64),
    "windows 40": partial(attend_windows, torch.float16, 40, False),
    "merged 40": partial(attend_windows, torch.float16, 40, True),
    **{
        f"int8 {'merged ' * merges}{channels}": partial(
            attend_windows, dtype, channels, merges, precision="int8"
        )
        for channels, dtype in ((128, torch.bfloat16), (64, torch.float16), (40, torch.float16))
        for merges in (False, True)
    },
    "merging": merge_tokens,
    "queries": merge_queries,
}
"""The number is how many channels a head has. Where a card may be a GeForce, it is one, but for a
case that is named "professional"."""

SIDES = 64, 48
"""Of pictures in tokens: no other code is made for the second one."""


def import_without_comfyui() -> None:
    """Have the pack's two upper packages be empty: the kernels need nothing of them."""
    for name, folder in (("token_merge", ROOT), ("token_merge.nodes", ROOT / "nodes")):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder)]


def main(cases: str, *capabilities: str) -> None:
    import_without_comfyui()
    from token_merge.nodes import kernels
    from token_merge.nodes.kernels import shapes
    from token_merge.tome_core.gpus import OF_GEFORCE

    kernels.register_kernels()
    made: dict[str, Any] = {}
    for module, names in KERNELS.items():
        there = import_module(f"{kernels.__name__}.{module}")
        for name in names:
            setattr(there, name, Compiler(getattr(there, name), made))
    for capability in map(int, capabilities):
        driver.set_active(Driver(capability))
        found = divmod(capability, 10)
        vars(shapes)["find_capability"] = lambda device, found=found: found
        for case in CASES if cases == "all" else cases.split(","):
            is_geforce = found in OF_GEFORCE and "professional" not in case
            vars(shapes)["is_geforce"] = lambda device, is_geforce=is_geforce: is_geforce
            for side in SIDES:
                CASES[case](side)
            for kernel in made.values():
                facts = {"capability": capability, "case": case, "kernel": kernel.name}
                print(json.dumps(facts | describe(kernel)), flush=True)
            made.clear()


if __name__ == "__main__":
    main(*sys.argv[1:])
