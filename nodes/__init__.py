"""The nodes of the pack."""

from comfy_api.latest import ComfyExtension, io
from typing_extensions import override

from .compare import TokenReductionCompare
from .hooks.run.kept_tensors import register_pause
from .hooks.run.node_text import tell_preparing
from .kernels import PREPARING, register_kernels
from .token_downsample import TokenDownsample, TokenDownsampleAdvanced, register_replacement
from .token_merge import TokenMerge, TokenMergeAdvanced

NODES: tuple[type[io.ComfyNode], ...] = (
    TokenMerge,
    TokenDownsample,
    TokenMergeAdvanced,
    TokenDownsampleAdvanced,
    TokenReductionCompare,
)


class TokenMergeExtension(ComfyExtension):
    @override
    async def on_load(self) -> None:
        await register_replacement()

    @override
    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        return list(NODES)


async def comfy_entrypoint() -> TokenMergeExtension:
    return TokenMergeExtension()


register_kernels()
register_pause()
PREPARING.append(tell_preparing)
