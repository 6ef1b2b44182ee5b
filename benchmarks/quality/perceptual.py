"""ST-LPIPS (arXiv 2207.13686): how different two pictures look, learned from people's judgements.

As LPIPS, with a network that a shift by a pixel does not disturb. Its weights are in its package.
"""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

SIDE = 64
"""The pictures that it was trained on have this side; the frames of the small video model are
smaller."""

UNUSED = {"IPython": "embed", "torchsummary": "summary"}
"""The package imports these modules without a use for measuring. With each stands the name that it
takes of it."""


@cache
def load() -> Any:
    """The network, AlexNet. Raises RuntimeError where its package is not installed."""
    missing = {name: ModuleType(name) for name in UNUSED if name not in sys.modules}
    for name, module in missing.items():
        setattr(module, UNUSED[name], None)
    sys.modules.update(missing)
    try:
        from stlpips_pytorch import stlpips
    except ModuleNotFoundError as error:
        raise RuntimeError(
            f"{error}; `python -m devtools quality` makes an environment that has it, "
            "`pip install --no-deps stlpips_pytorch` adds it to another one"
        ) from error
    finally:
        for name in missing:
            del sys.modules[name]
    return stlpips.LPIPS(net="alex", variant="shift_tolerant", verbose=False)


@torch.inference_mode()
def st_lpips(pictures: Tensor, others: Tensor) -> Tensor:
    """0 for equal pictures: (B, 3, H, W) twice, in [0, 1] -> (B,)."""
    distances: Tensor = load()(pictures.cpu(), others.cpu(), normalize=True)  # (B, 1, 1, 1)
    return distances.flatten()


def st_lpips_of_clips(clips: Tensor, others: Tensor) -> Tensor:
    """The mean over the frames, enlarged to ``SIDE``: (B, 3, F, H, W) twice, in [0, 1] -> (B,)."""
    frames = (
        F.interpolate(rearrange(x, "b c f h w -> (b f) c h w"), (SIDE, SIDE), mode="bilinear")
        for x in (clips, others)
    )
    return st_lpips(*frames).unflatten(0, (len(clips), -1)).mean(1)
