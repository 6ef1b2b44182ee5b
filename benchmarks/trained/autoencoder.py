"""taef2, a small autoencoder: 8 x 8 pixels are one cell of 32 channels, as in FLUX.2.

By Ollin Boer Bohan, MIT; its licence lies beside its weights. The networks are ComfyUI's.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from comfy.taesd.taesd import Decoder, Encoder
from einops import rearrange
from safetensors.torch import load_file
from torch import Tensor, nn

CHANNELS = 32
PIXELS_PER_TOKEN = 8
"""A token has so many pixels a side."""
PLACE = Path(__file__).absolute().parent / "taef2" / "taef2.safetensors"
AT_ONCE = 2**23
"""So many pixels are encoded or decoded at once, so that memory suffices."""


@torch.no_grad()
def encode(pixels: Tensor) -> Tensor:
    """(B, 3, ..., 8H, 8W) in [0, 1] -> (B, 32, ..., H, W) in single precision, unscaled.

    ...: nothing for pictures, the frames of clips.
    """
    return _apply(_build(pixels.device)[0], pixels, pixels.shape[-1] * pixels.shape[-2])


@torch.no_grad()
def decode(latent: Tensor) -> Tensor:
    """(B, 32, ..., H, W) -> (B, 3, ..., 8H, 8W) in [0, 1]."""
    pixels = latent.shape[-1] * latent.shape[-2] * PIXELS_PER_TOKEN**2
    return _apply(_build(latent.device)[1], latent, pixels).clamp(0, 1)


def _apply(network: nn.Module, given: Tensor, pixels: int) -> Tensor:
    """pixels: of one frame."""
    between = given.shape[2:-2]
    frames = rearrange(given, "b c ... h w -> b ... c h w").flatten(0, -4)
    weight = next(network.parameters())
    parts = frames.split(max(1, AT_ONCE // pixels))
    found = torch.cat([network(part.to(weight.dtype)).float() for part in parts])
    found = found.unflatten(0, (len(given), *between))
    return rearrange(found, "b ... c h w -> b c ... h w")


@cache
def _build(device: torch.device) -> tuple[nn.Module, nn.Module]:
    """In half precision on a GPU. Raises FileNotFoundError where the weights are missing."""
    tensors = load_file(PLACE)
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    networks = []
    for name, build in (("encoder", Encoder), ("decoder", Decoder)):
        network = build(CHANNELS, True)
        start = f"{name}."
        network.load_state_dict(
            {key.removeprefix(start): tensors[key] for key in tensors if key.startswith(start)}
        )
        networks.append(network.to(device, dtype).requires_grad_(False))
    return networks[0], networks[1]
