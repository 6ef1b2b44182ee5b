"""The nodes of the pack."""

from comfy_api.latest import ComfyExtension, io
from typing_extensions import override

from . import replacements
from .compare import TokenReductionCompare
from .token_downsample import TokenDownsample
from .token_downsample_advanced import TokenDownsampleAdvanced
from .token_merge import TokenMerge
from .token_merge_advanced import TokenMergeAdvanced

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
        await replacements.register()

    @override
    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        return list(NODES)


async def comfy_entrypoint() -> TokenMergeExtension:
    return TokenMergeExtension()
