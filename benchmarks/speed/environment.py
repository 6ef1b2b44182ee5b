"""What every part is measured with."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Environment:
    """device: where the models compute. narrow: small models, for a test."""

    device: torch.device
    narrow: bool = False

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    @property
    def guided(self) -> bool:
        """Prompt and negative prompt in one call, as ComfyUI does; a CPU is spared one of them."""
        return self.on_gpu

    @property
    def dtype(self) -> torch.dtype:
        """What ComfyUI takes by itself on such a device."""
        return torch.float16 if self.on_gpu else torch.float32

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")
