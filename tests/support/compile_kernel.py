"""Compiles our kernels for GPUs that are not here, as their callers call them: a line for each.

A program of its own: Triton is told before it is imported whether to compile or to interpret. Its
arguments are compute capabilities of NVIDIA's GPUs: 80 of Ampere, and of Ada, which is compiled for
alike, 90 of Hopper, 120 of Blackwell.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from triton.runtime.jit import mangle_type

from benchmarks import loading


class Recorder:
    """Stands in for a kernel and keeps what it is called with."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **kwargs: self.calls.append((args, kwargs))


def main(*capabilities: int) -> None:
    loading.load("cpu")
    from token_merge.nodes.kernels import attention_triton, merging, queries, weighed_keys, windows
    from token_merge.tome_core import (
        DownsampleSettings,
        Draws,
        MergeSettings,
        Stream,
        TokenGrid,
        choose_strided,
    )
    from token_merge.tome_core.windows import Strips

    from .layers import LayerTokens, kernels_of_windows, plan_layer

    recorders = {
        **record(attention_triton, "attend", "attend_merged"),
        **record(merging.kernels, "find_nearest", "number_slots", "average_slots"),
        **record(queries, "merge_strips"),
    }
    grid, draws = TokenGrid(24, 24), Draws((0,), torch.device("cpu"))
    stream = Stream(grid, before=5)
    metric = torch.randn(1, 576, 8)
    layer = LayerTokens(stream, lambda: metric, draws, local_window=8)
    for dtype, channels in ((torch.bfloat16, 128), (torch.float16, 40)):
        q, k, v = torch.zeros(3, 1, 2, stream.length, channels, dtype=dtype)
        for settings in (DownsampleSettings(), MergeSettings()):
            with kernels_of_windows():
                plan = plan_layer(settings, layer)
            windows.attend(plan, q, k, v, None, 0.1)
        if channels > 64:  # others get their weights otherwise
            weighed_keys.attend_weighed(q, k, v, torch.ones(1, stream.length), 0.1)
    x = torch.zeros(2, 576, 320, dtype=torch.float16)
    merging.match_local(x, grid, choose_strided(grid, 2, 2, draws, draws.device), 100).merge(x)
    numbers = torch.arange(160).view(2, 80)
    queries.merge_queries(torch.zeros(1, 160, 128).half(), Strips(numbers, numbers[:, :20], 64))
    for name, recorder in recorders.items():
        calls = (read(recorder.kernel, *call) for call in recorder.calls)
        for types, constants, how in {repr(each): each for each in calls}.values():
            # One that differs in type and channels alone needs no other GPU tried.
            for capability in capabilities[: 1 if types.get("q") == "*fp16" else None]:
                source = ASTSource(recorder.kernel, types, constants)
                made = compile(source, target=GPUTarget("cuda", capability, 32), options=how)
                print(capability, name, constants, how, len(made.asm["cubin"]), flush=True)


def record(module: Any, *names: str) -> dict[str, Recorder]:
    """Puts a recorder in place of each kernel."""
    recorders = {name: Recorder(getattr(module, name)) for name in names}
    for name, recorder in recorders.items():
        setattr(module, name, recorder)
    return recorders


def read(kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """What a call compiles: the types of its arguments, those that are constant, and how."""
    how = {name: options.pop(name) for name in ("num_warps", "num_stages") if name in options}
    names = kernel.arg_names
    types = {name: mangle_type(value) for name, value in zip(names, args, strict=False)}
    types |= dict.fromkeys(options, "constexpr")
    return types, options, how


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
