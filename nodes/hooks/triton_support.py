"""Whether a device can run kernels of our own, which are written in Triton."""

from __future__ import annotations

from collections.abc import Callable

import torch

LEAST_CAPABILITY = (8, 0)
"""Of NVIDIA GPUs that compute in bfloat16, and hold what the kernels need beside a processor."""


def explain_failure(device: torch.device, works: Callable[[], bool]) -> str:
    """Why kernels do not run on a device, empty where they do.

    works: tries them there. A driver, a compiler or the installed Triton may not do what they need.
    """
    # A tensor may say that it is on a GPU where there is none, in tracing for example.
    if device.type != "cuda" or (device.index or 0) >= torch.cuda.device_count():
        return "there is no GPU"
    if torch.version.hip or torch.cuda.get_device_capability(device) < LEAST_CAPABILITY:
        return "the GPU is not one of NVIDIA's since 2020"
    try:
        return "" if works() else "Triton gives other results on this GPU"
    except ImportError:
        return "Triton is not installed"
    except Exception as error:
        return f"Triton does not run here ({(str(error).strip() or repr(error))[:100]})"
