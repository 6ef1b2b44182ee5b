"""The sizes of a UNet's layers, which its latent tells before the UNet is called."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ....tome_core.grid import TokenGrid
from ....tome_core.layer_size import LayerSize
from ....tome_core.planning import explain_whole
from ....tome_core.settings import Settings
from ....tome_core.streams import Stream
from ..model_call import Run
from ..settings_stack import SettingsStack
from .layers import SelfAttentionLayer


def stays_whole(
    run: Run, stack: SettingsStack, layers: Sequence[SelfAttentionLayer], latent: Tensor
) -> bool:
    """Whether every setting leaves all its layers whole at this size of the latent.

    The report is told why, once in a run. latent: (B, C, H, W).

    Another node may have the UNet compute fewer tokens than the latent tells, and then reducing
    them would save even less; or more, and then they stay whole, too.
    """
    size = (latent.shape[-2:], latent.device)
    whole = run.whole_sizes.get(size)
    if whole is None:
        reasons = _explain(stack, layers, latent)
        whole = run.whole_sizes[size] = all(reasons.values())
        for (settings, layer), reason in reasons.items() if whole else ():
            run.report.skip([settings], layer, reason)
    return whole


def _explain(
    stack: SettingsStack, layers: Sequence[SelfAttentionLayer], latent: Tensor
) -> dict[tuple[Settings, SelfAttentionLayer], str]:
    """Why each setting leaves each of its layers whole, empty where it does not."""
    return {
        (settings, layer): explain_whole(settings, _find_size(layer, stack, latent))
        for settings in stack.settings
        for layer in layers
        if settings.find_parts(layer.downsample, stack.resolutions)
    }


def _find_size(layer: SelfAttentionLayer, stack: SettingsStack, latent: Tensor) -> LayerSize:
    # A UNet rounds up where it halves an odd side.
    height, width = (-(-side // layer.downsample) for side in latent.shape[-2:])
    return LayerSize(
        Stream(TokenGrid(height, width)),
        latent.device,
        layer.downsample,
        stack.resolutions,
        layer.channels,
    )
