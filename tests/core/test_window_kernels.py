"""Which of a GPU's kernels computes local windows, and that the result is that of a CPU."""

from math import log

import pytest
import torch
from support import other_device
from support.gpu_tensor import GpuTensor
from support.layers import LayerTokens, plan_layer
from support.other_device import DEVICE, OtherDevice
from token_merge.tome_core import DownsampleSettings, Draws, Stream, TokenGrid
from token_merge.tome_core.attention import partial
from token_merge.tome_core.windows.attention import attend

FLASH, EFFICIENT = (f"_scaled_dot_product_{name}_attention" for name in ("flash", "efficient"))


@pytest.fixture
def read_keys(monkeypatch):
    """For each kernel, how many pairs of a query and a key it computed."""
    counts = dict.fromkeys(other_device.KERNELS, 0)

    def count(name, kernel):
        def call(q, k, *args, **kwargs):
            counts[name] += q.shape[0] * q.shape[2] * k.shape[2]
            return kernel(q, k, *args, **kwargs)

        return call

    for name, kernel in other_device.KERNELS.items():
        monkeypatch.setitem(other_device.KERNELS, name, count(name, kernel))
    return counts


def attend_stream(stream, device, tensors):
    layer = LayerTokens(stream, None, Draws((7,), device), local_window=16)
    plan = plan_layer(DownsampleSettings(local_window=16), layer)
    return attend(plan, *tensors, None, 0.25)


@pytest.mark.parametrize("grid", [TokenGrid(32, 32), TokenGrid(17, 23), TokenGrid(10, 12, 5)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_all_pairs_are_computed_by_the_fastest_kernel(grid, dtype, read_keys):
    """It takes half precision and no bias; single precision is computed by another one."""
    stream = Stream(grid, 3, 2)
    tensors = torch.randn(3, 1, 2, stream.length, 16).to(dtype)
    expected = attend_stream(stream, torch.device("cpu"), tensors.float())
    with OtherDevice() as device:
        found = attend_stream(stream, DEVICE, [GpuTensor(each) for each in tensors])
    assert not device.crossings
    torch.testing.assert_close(
        found.held.float(), expected, rtol=0, atol=10 * torch.finfo(dtype).eps
    )
    computed, unused = (EFFICIENT, FLASH) if dtype == torch.float32 else (FLASH, EFFICIENT)
    assert read_keys[computed] > 0 == read_keys[unused]


@pytest.fixture
def amd(monkeypatch):
    """As on a GPU of AMD's: ``amd(change)`` changes the lse that its kernel gives."""
    asked = partial.has_efficient, partial.has_flash, partial.find_lse_unit
    monkeypatch.setattr(torch.version, "hip", "6.4")
    monkeypatch.setattr(torch.backends.cuda, "SDPAParams", lambda *call: call)
    monkeypatch.setattr(torch.backends.cuda, "can_use_efficient_attention", lambda call: True)
    for each in asked:
        each.cache_clear()
    kernel = other_device.KERNELS[EFFICIENT]

    def change_lse(change):
        def call(*args, **kwargs):
            out, lse, *others = kernel(*args, **kwargs)
            return out, change(lse), *others

        monkeypatch.setitem(other_device.KERNELS, EFFICIENT, call)

    yield change_lse
    for each in asked:
        each.cache_clear()


@pytest.mark.parametrize(
    ("change", "is_known"),
    [
        (lambda lse: lse, True),
        (lambda lse: lse / log(2), True),
        (lambda lse: lse.flatten(0, 1), False),
        (torch.zeros_like, False),
    ],
    ids=["natural", "of base 2", "other sides", "none"],
)
def test_an_amd_gpu_gives_a_log_of_either_base_or_its_kernel_is_not_taken(change, is_known, amd):
    """AOTriton gives a natural one from 0.11 on, and one of base 2 before."""
    stream = Stream(TokenGrid(32, 32), 3, 2)
    tensors = torch.randn(3, 1, 2, stream.length, 16)
    expected = attend_stream(stream, torch.device("cpu"), tensors)
    amd(change)
    with OtherDevice():
        found = attend_stream(stream, DEVICE, [GpuTensor(each) for each in tensors])
    torch.testing.assert_close(found.held, expected, rtol=0, atol=1e-5)
    assert partial.has_efficient(DEVICE, torch.float32) == is_known
