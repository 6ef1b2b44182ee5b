"""What GPUs compute, by their data sheets."""

from __future__ import annotations

import re
from typing import Any

import torch

from .constants import constant

HALF = (torch.float16, torch.bfloat16)
"""These types are of half precision."""

H100_MULTIPROCESSORS = 132

OF_MULTIPROCESSOR = {
    (7, 0): 0.21,
    (7, 5): 0.22,
    (8, 0): 0.385,
    (8, 6): 0.24,
    (8, 9): 0.34,
    (9, 0): 1.0,
    (10, 0): 2.0,
    (10, 3): 2.0,
    (12, 0): 0.36,
}
OF_GEFORCE = {(7, 5): 0.11, (8, 6): 0.12, (8, 9): 0.172, (12, 0): 0.164}
OF_NAME = {"L4": 0.28, "L20": 0.17, "L40": 0.17, "H20": 0.25}
OF_OTHERS = 0.17
"""The key is the compute capability, or a word of the name. The value is what one multiprocessor
computes in half precision, with sums in single precision and all numbers of a matrix, as a share of
one of an H100 (989 TFLOPS by 132). Cards of GeForce add up in single precision at half the rate of
other cards of their capability.

NVIDIA's data sheets and white papers say in TFLOPS (read in collections that cite them: Lightning's
throughput.py, LLM-Viewer's hardware_params.py, the accelerator table of ml-engineering): V100 125,
T4 65, Quadro RTX 5000 89, RTX 2080 Ti 54, A100 312, RTX A6000 155, A40 150, RTX 3090 71, L40S 362,
RTX 6000 Ada 364, L40 181, L20 120, L4 121, RTX 4090 165, H20 148, B200 and B300 2250, RTX PRO 6000
504, RTX 5090 210. Of other capabilities, as of Jetson and DGX Spark, nothing was found.

A GPU that is in no table is taken for a GeForce of the last years. Where that is too little, layers
are reduced that are a little slower then; where it is too much, layers are left alone that could be
faster, which would be worse."""

OF_AMD = {
    "gfx90": 0.055,
    "gfx908": 0.21,
    "gfx90a": 0.23,
    "gfx942": 0.57,
    "gfx950": 1.3,
    "gfx101": 0.13,
    "gfx103": 0.15,
    "gfx11": 0.34,
    "gfx120": 0.81,
}
"""The key is how the name of an architecture of AMD's begins, and the value is the same. From gfx10
on PyTorch counts pairs of compute units, and before gfx11 half precision has no matrices there but
for Instinct from gfx908 on. AMD's data sheets say in TFLOPS: MI50 26.5, MI100 185, MI250X 383,
MI300X 1307, MI355X 2517, RX 5700 XT 19.5, RX 6900 XT 46, RX 7900 XTX 123, RX 9070 XT 195."""


def read_gpu(device: torch.device) -> Any | None:
    """What PyTorch tells of a GPU; None where there is none.

    A tensor may say that it is on a GPU where there is none, in tracing for example.
    """
    if device.type != "cuda" or (device.index or 0) >= torch.cuda.device_count():
        return None
    return torch.cuda.get_device_properties(device)


@constant
def find_capability(device: torch.device) -> tuple[int, int]:
    """The compute capability of a GPU of NVIDIA's; that of others is 0.

    Those of AMD's GPUs are no ones of NVIDIA's: that of an MI250 is that of an H100.
    """
    of_gpu = read_gpu(device)
    if of_gpu is None or torch.version.hip:
        return 0, 0
    return of_gpu.major, of_gpu.minor


@constant
def is_geforce(device: torch.device) -> bool:
    """On such a GPU products with sums of single precision take twice as long as with half."""
    of_gpu = read_gpu(device)
    return of_gpu is not None and _is_geforce(of_gpu)


@constant
def compare_with_h100(device: torch.device) -> float:
    """What a GPU computes, as a share of what an NVIDIA H100 does."""
    of_gpu = read_gpu(device)
    if of_gpu is None:
        return 1.0
    return _find_share(of_gpu) * of_gpu.multi_processor_count / H100_MULTIPROCESSORS


def _find_share(of_gpu: Any) -> float:
    """What one multiprocessor computes, by what PyTorch tells of a GPU."""
    if torch.version.hip:
        known = [name for name in OF_AMD if of_gpu.gcnArchName.startswith(name)]
        return OF_AMD[max(known, key=len)] if known else OF_OTHERS
    capability = of_gpu.major, of_gpu.minor
    named = [OF_NAME[word] for word in re.split(r"[ -]", of_gpu.name) if word in OF_NAME]
    if named:
        return named[0]
    if _is_geforce(of_gpu) and capability in OF_GEFORCE:
        return OF_GEFORCE[capability]
    return OF_MULTIPROCESSOR.get(capability, OF_OTHERS)


def _is_geforce(of_gpu: Any) -> bool:
    return "GeForce" in of_gpu.name
