"""Compiles our kernel for GPUs that are not here, as its callers call it: prints a line for each.

A program of its own: Triton is told before it is imported whether to compile or to interpret.
"""

from __future__ import annotations

from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from triton.runtime.jit import mangle_type

from benchmarks import loading

CAPABILITIES = {128: (80, 90, 120), 40: (80,)}
"""Of NVIDIA's Ampere, Hopper and Blackwell, by the channels of a head; Ada is compiled for as
Ampere is."""


class Recorder:
    """Stands in for the kernel and keeps what it is called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **kwargs: self.calls.append((args, kwargs))


def main() -> None:
    loading.load("cpu")
    from token_merge.nodes.hooks import kernel_choice
    from token_merge.tome_core import (
        DownsampleSettings,
        Draws,
        LayerTokens,
        MergeSettings,
        Stream,
        TokenGrid,
        plan_layer,
    )

    module = kernel_choice._import_kernel()
    written = module.triton_kernels
    kernels = {name: getattr(written, name) for name in ("attend", "attend_merged")}
    for name in kernels:
        setattr(written, name, Recorder())
    stream = Stream(TokenGrid(24, 24), before=5)
    metric, draws = torch.randn(1, 576, 8), Draws((0,), torch.device("cpu"))
    layer = LayerTokens(stream, lambda: metric, draws, local_window=8, by_number=True)
    for dtype, channels in ((torch.bfloat16, 128), (torch.float16, 40)):
        q, k, v = torch.zeros(3, 1, 2, stream.length, channels, dtype=dtype)
        for settings in (DownsampleSettings(), MergeSettings()):
            module.attend_windows(plan_layer(settings, layer), q, k, v, 0.1)
        module.attend_weighed(q, k, v, torch.ones(1, stream.length), 0.1)
    for name, kernel in kernels.items():
        calls = getattr(written, name).calls
        kinds = {repr(each): each for each in (read(kernel, *call) for call in calls)}
        for types, constants, how in kinds.values():
            for capability in CAPABILITIES[constants["CHANNELS"]]:
                target = GPUTarget("cuda", capability, 32)
                made = compile(ASTSource(kernel, types, constants), target=target, options=how)
                said = types["q"], constants["CHANNELS"], how["num_stages"]
                print(capability, name, *said, len(made.asm["cubin"]), flush=True)


def read(kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """What a call compiles: the types of its arguments, those that are constant, and how."""
    how = {name: options.pop(name) for name in ("num_warps", "num_stages")}
    names = kernel.arg_names
    types = {name: mangle_type(value) for name, value in zip(names, args, strict=False)}
    types |= dict.fromkeys(options, "constexpr")
    return types, options, how


if __name__ == "__main__":
    main()
