"""A layer with its tokens and draws, as a whole or for one target: what planning is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from token_merge.nodes.kernels.usable import load_kernel
from token_merge.tome_core import Draws, Layer, Settings, Skipped, Stream
from token_merge.tome_core.faster_forms import FORMS, Form
from token_merge.tome_core.layer import MOST_GROUPS
from token_merge.tome_core.plan_layer import plan_layer as core_plan_layer
from token_merge.tome_core.settings import Target
from torch import Tensor


@dataclass(frozen=True)
class LayerTokens:
    """find_metric: gives the picture's tokens that are compared, (B, N, C). The rest: ``Layer``.

    draws: on the device of the layer.
    """

    stream: Stream
    find_metric: Callable[[], Tensor] | None
    draws: Draws
    downsample: int = 1
    resolutions: tuple[int, ...] = (1,)
    local_window: int = 0
    most_groups: int = MOST_GROUPS
    channels: int = 0

    @property
    def layer(self) -> Layer:
        return Layer(
            self.stream,
            self.draws.device,
            self.downsample,
            self.resolutions,
            self.channels,
            self.local_window,
            self.most_groups,
        )

    def find_tokens(self) -> Tensor:
        """Of the whole stream: those beside the picture, which nobody compares, are zeros."""
        assert self.find_metric
        return F.pad(self.find_metric(), (0, 0, self.stream.before, self.stream.after))


def plan_targets(settings: Settings, layer: LayerTokens, targets: Iterable[Target]) -> Any:
    """The plan of each target, or why there is none."""
    compares = settings.node_name == "Token Merge"
    tokens: Any = layer.find_tokens() if compares else None
    return core_plan_layer(settings, targets, layer.layer, layer.draws, tokens)


def plan_layer(settings: Settings, layer: LayerTokens) -> Any:
    """The plan that ``settings`` ask for; of merging, that of the queries."""
    found = plan_targets(settings, layer, ["queries"])
    return found if isinstance(found, Skipped) else found["queries"]


@contextmanager
def kernels_of_windows() -> Iterator[Any]:
    """As where a GPU runs our kernels of local windows: tiles may have any size. Gives the kernels'
    module.
    """
    before = FORMS["windows.attend"]
    kernels = load_kernel("windows")
    FORMS["windows.attend"] = Form(kernels.attend, before.takes, lambda *_: "")
    try:
        yield kernels
    finally:
        FORMS["windows.attend"] = before
