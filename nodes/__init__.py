"""The nodes of the pack."""

from comfy_api.latest import ComfyExtension, io
from typing_extensions import override

from .token_downsample import TokenDownsample
from .token_merge import TokenMerge


class TokenMergeExtension(ComfyExtension):
    @override
    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        return [TokenMerge, TokenDownsample]


async def comfy_entrypoint() -> TokenMergeExtension:
    return TokenMergeExtension()
