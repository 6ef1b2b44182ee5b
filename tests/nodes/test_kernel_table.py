"""Our kernels are taken where they were tried once and gave what they have to, and nowhere else."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch
from token_merge.nodes.kernels import kernel_table
from token_merge.nodes.kernels import usable as trial
from token_merge.nodes.kernels.usable import is_alike, why_unusable
from token_merge.tome_core import Layer, Stream, TokenGrid, constants
from token_merge.tome_core.faster_forms import FORMS, find_form, why_unavailable
from token_merge.tome_core.windows import Strips

CPU, GPU = torch.device("cpu"), torch.device("cuda", 7)
HALF, BFLOAT, SINGLE = torch.float16, torch.bfloat16, torch.float32

ZEROS, ONES = torch.zeros(2, 100), torch.ones(2, 100)


class Kernel(SimpleNamespace):
    """Stands in for the module of a kernel. trials: what it was tried with."""

    def __init__(self, found=ZEROS, known=ZEROS):
        super().__init__(found=found, known=known, trials=[])

    def try_out(self, *given):
        self.trials.append(given)
        yield self.known, self.known
        yield self.found, self.known


@pytest.fixture
def gpus(monkeypatch):
    """``gpus(kernel)``: as if there were eight, on which ``kernel`` is found; or an error is."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))

    def install(kernel):
        def load(name):
            if isinstance(kernel, Exception):
                raise kernel
            return kernel

        monkeypatch.setattr(trial, "load_kernel", load)

    for known in (trial._try_once, trial._announce):
        known.cache_clear()
    yield install
    trial._try_once.cache_clear()


def test_a_kernel_is_tried_once_for_each_device_type_and_shape(gpus):
    kernel = Kernel()
    gpus(kernel)
    other = torch.device("cuda", 1)
    cases = [(GPU, HALF, 64), (GPU, HALF, 40), (GPU, BFLOAT, 64), (other, HALF, 64)]
    for case in 2 * cases:
        assert why_unusable("windows", *case) == ""
    assert kernel.trials == cases


def test_the_console_says_once_that_a_kernel_may_be_compiled(gpus, caplog):
    gpus(Kernel())
    caplog.set_level("INFO")
    for _ in range(2):
        why_unusable("windows", GPU)
    assert caplog.text.count("trying our kernel 'windows'") == 1


def test_a_kernel_is_tried_apart_from_the_block_that_asks(gpus, monkeypatch):
    """Else ComfyUI would find other allocations in the first block than in those after it."""
    pauses, during = [], []

    class Watched(Kernel):
        def try_out(self, *given):
            during.append(len(pauses))
            return super().try_out(*given)

    @contextmanager
    def pause():
        pauses.append("begins")
        yield
        pauses.clear()

    monkeypatch.setattr(constants, "PAUSES", [pause])
    gpus(Watched())
    assert why_unusable("windows", GPU) == ""
    assert during == [1] and not pauses


def fail(*_):
    raise RuntimeError("no compiler was found")


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (Kernel(), ""),
        (Kernel(found=ONES), "Triton gives other results here"),
        (ImportError("triton"), "Triton is not installed"),
        (SimpleNamespace(try_out=fail), "Triton does not run here (no compiler was found)"),
        (SimpleNamespace(), "Triton does not run here ("),
    ],
    ids=["all there", "other results", "no Triton", "fails", "another error"],
)
def test_a_kernel_is_left_alone_with_a_reason(kernel, reason, gpus):
    gpus(kernel)
    found = why_unusable("windows", GPU)
    assert found.startswith(reason) and bool(found) == bool(reason)


@pytest.mark.parametrize(
    ("version", "is_old"),
    [("3.2.0", True), ("2.3.1", True), ("3.3.0", False), ("3.10.0+git1", False), ("", False)],
)
def test_a_triton_that_is_too_old_is_named_where_a_kernel_fails(version, is_old, gpus, monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__=version))
    gpus(SimpleNamespace(try_out=fail))
    known = f"Triton {version} is installed, and 3.3 or later is needed"
    assert (why_unusable("windows", GPU) == known) == is_old


@pytest.mark.parametrize(
    "error",
    [torch.cuda.OutOfMemoryError("CUDA out of memory."), RuntimeError("Triton: out of memory")],
    ids=["PyTorch's", "Triton's"],
)
def test_a_gpu_that_was_full_is_tried_again_and_the_console_says_so_once(error, gpus, caplog):
    caplog.set_level("INFO")
    gpus(error)
    for _ in range(2):
        assert why_unusable("windows", GPU) == "the GPU had too little memory to try it"
    gpus(Kernel())
    assert why_unusable("windows", GPU) == ""
    assert caplog.text.count("trying our kernel") == 1


def test_gpus_before_ampere_are_not_even_tried(gpus, monkeypatch):
    gpus(AssertionError("it was tried"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert why_unusable("windows", GPU) == "the GPU is not one of NVIDIA's since 2020"


def test_gpus_of_amd_are_not_even_tried(gpus, monkeypatch):
    gpus(AssertionError("it was tried"))
    monkeypatch.setattr(torch.version, "hip", "6.2")
    assert why_unusable("windows", GPU) == "the GPU is not one of NVIDIA's since 2020"


@pytest.mark.parametrize("device", [CPU, torch.device("mps"), torch.device("cuda", 8)], ids=str)
def test_where_there_is_no_gpu_there_is_nothing_to_try(device, gpus):
    """A tensor may also say that it is on a GPU where there is none."""
    gpus(AssertionError("it was tried"))
    assert why_unusable("windows", device) == "there is no GPU"


def test_rounding_decides_between_tokens_that_are_equally_similar():
    known = torch.arange(200)
    for others, alike in ((4, True), (5, False)):
        found = known.clone()
        found[:others] += 7
        assert is_alike(found, known) == alike


def test_every_number_of_an_output_has_to_be_right():
    """Else few tokens that are all wrong would go unseen, those of a short prompt for example."""
    known = torch.randn(200).half()
    assert is_alike(known + 0.01, known)
    found = known.clone()
    found[7] += 0.5
    assert not is_alike(found, known)


SLOW = pytest.mark.thorough


@pytest.mark.parametrize(
    ("kernel", "shape"),
    [
        pytest.param("windows", (40, False), marks=SLOW),
        pytest.param("windows", (64, True), marks=SLOW),
        pytest.param("windows", (64, True, "int8"), marks=SLOW),
        ("weighed_keys", (64,)),
        ("merging", ()),
        ("queries", ()),
    ],
)
def test_each_kernel_passes_its_own_trial(kernel, shape):
    pytest.importorskip("triton")
    assert trial._works(kernel, CPU, HALF, *shape)


@pytest.mark.parametrize(
    ("kernel", "verb", "shape"),
    [
        ("windows", "attend", (64, False)),
        ("windows", "attend", (64, True)),
        ("weighed_keys", "attend_weighed", (64,)),
    ],
)
def test_attention_of_other_size_is_found_out(kernel, verb, shape, monkeypatch):
    pytest.importorskip("triton")
    module = trial.load_kernel(kernel)
    right = {
        "attend": getattr(module, "attend_by_sets", None),
        "attend_weighed": getattr(module, "attend_weighed_densely", None),
    }[verb]
    for factor, works in ((1.0, True), (1.1, False)):
        monkeypatch.setattr(module, verb, lambda *given, factor=factor: factor * right(*given))
        assert trial._works(kernel, CPU, HALF, *shape) == works


def test_tokens_that_are_merged_elsewhere_are_found_out(monkeypatch):
    pytest.importorskip("triton")
    merging = trial.load_kernel("merging")
    find_nearest = merging._find_nearest

    def find_wrongly(levels, *given):
        find_nearest(levels, *given)
        levels.copy_(levels.flip(1))

    monkeypatch.setattr(merging, "_find_nearest", find_wrongly)
    assert not trial._works("merging", CPU, HALF)


def test_queries_that_are_merged_elsewhere_are_found_out(monkeypatch):
    pytest.importorskip("triton")

    def merge_wrongly(kept, slots, metric, strips):
        kept.copy_(torch.arange(kept.shape[2]))
        slots.zero_()

    monkeypatch.setattr(trial.load_kernel("queries"), "_merge_strips", merge_wrongly)
    assert not trial._works("queries", CPU, HALF)


@pytest.fixture
def usable(monkeypatch):
    """As on a GPU that runs every kernel."""
    monkeypatch.setattr(kernel_table, "why_unusable", lambda *_: "")


TOKENS = torch.randn(1, 2, 70, 64).half()
FAR = torch.empty(1, 2, 2**24 + 1, 64, dtype=HALF, device="meta")
TAKEN_OR_NOT = pytest.mark.parametrize(
    ("q", "v", "why"),
    [
        (TOKENS, TOKENS, ""),
        (TOKENS.bfloat16(), TOKENS.bfloat16(), ""),
        (TOKENS.float(), TOKENS.float(), "single precision"),
        (TOKENS, TOKENS.bfloat16(), "values of another type"),
        (TOKENS, TOKENS[..., :32], "fewer channels of values"),
        (TOKENS.repeat(1, 1, 1, 3), TOKENS.repeat(1, 1, 1, 3), "too many channels"),
        (TOKENS.mT.contiguous().mT, TOKENS, "channels apart in memory"),
        (TOKENS, TOKENS.clone().requires_grad_(), "gradients are asked for"),
        (TOKENS, FAR, "too far apart"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)


def takes_windows(q, v, mask=None, merged=None, precision="exact"):
    plan = SimpleNamespace(merged=merged, precision=precision)
    return FORMS["windows.attend"].takes(plan, q, q, v, mask, 0.1)


def takes_weighed(q, v):
    return FORMS["attention.attend_weighed"].takes(q, q, v, None, 0.1)


@TAKEN_OR_NOT
def test_attention_of_other_tensors_is_left_to_pytorch(q, v, why, usable):
    assert takes_windows(q, v) == takes_weighed(q, v) == (not why)


def test_windows_with_a_mask_are_left_to_pytorch(usable):
    assert not takes_windows(TOKENS, TOKENS, mask=torch.zeros(1, 1, 1, 70))


@pytest.mark.parametrize(
    ("dtype", "channels", "masked", "reason"),
    [
        (HALF, 128, False, ""),
        (BFLOAT, 40, False, ""),
        (SINGLE, 64, False, "our kernel computes in half precision"),
        (HALF, 256, False, "our kernel takes heads of at most 128 channels"),
        (HALF, 64, True, "our kernel takes no mask"),
    ],
)
def test_it_is_known_before_planning_what_windows_are_left_to_pytorch(
    dtype, channels, masked, reason, usable
):
    assert why_unavailable("windows.attend", GPU, dtype, channels, masked) == reason
    x = torch.zeros(1, 2, 70, channels, dtype=dtype)
    mask = torch.zeros(1, 1, 1, 70) if masked else None
    assert takes_windows(x, x, mask) == (not reason)


def test_merged_queries_are_left_to_pytorch_where_their_kernel_alone_does_not_run(monkeypatch):
    monkeypatch.setattr(kernel_table, "why_unusable", lambda *asked: "no" if True in asked else "")
    assert takes_windows(TOKENS, TOKENS)
    assert not takes_windows(TOKENS, TOKENS, merged=object())


def test_windows_are_in_int8_only_where_that_kernel_runs(monkeypatch):
    monkeypatch.setattr(
        kernel_table, "why_unusable", lambda *asked: "no" if "int8" in asked else ""
    )
    layer = Layer(Stream(TokenGrid(64, 64)), GPU, precision="int8")
    assert layer.find_precision() == "exact" and not layer.why_no_window_kernel()
    assert not takes_windows(TOKENS, TOKENS, precision="int8")
    monkeypatch.setattr(kernel_table, "why_unusable", lambda *_: "")
    assert layer.find_precision() == "int8" and not layer.why_no_window_kernel()
    assert takes_windows(TOKENS, TOKENS, precision="int8")


def test_values_that_need_no_gradients_just_now_are_taken(usable):
    learned = TOKENS.clone().requires_grad_()
    with torch.no_grad():
        assert takes_windows(TOKENS, learned) and takes_weighed(TOKENS, learned)


@pytest.mark.parametrize(("channels", "pays"), [(16, False), (40, False), (64, True), (128, True)])
def test_channels_that_would_be_padded_get_their_weights_otherwise(channels, pays, usable):
    tokens = torch.randn(1, 2, 70, channels).half()
    assert takes_windows(tokens, tokens)
    assert takes_weighed(tokens, tokens) == pays


METRIC = torch.randn(1, 320, 16)


def takes_matching(metric):
    return FORMS["merging.match_local"].takes(metric, None, None, 40)


def takes_strips(metric, queries=80, dst=20):
    numbers = torch.arange(320).view(-1, queries)
    return FORMS["windows.merge_queries"].takes(metric, Strips(numbers, numbers[:, :dst], 64))


@pytest.mark.parametrize("takes", [takes_matching, takes_strips])
@pytest.mark.parametrize(
    ("metric", "why"),
    [
        (METRIC.half(), ""),
        (METRIC.bfloat16(), ""),
        (METRIC, "single precision"),
        (METRIC.half().mT.contiguous().mT, "channels apart in memory"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_other_tokens_are_left_to_pytorch(metric, why, takes, usable):
    assert takes(metric) == (not why)


@pytest.mark.parametrize(
    ("queries", "dst", "channels", "fits"),
    [
        (80, 20, 256, True),
        (160, 20, 16, False),
        (80, 64, 16, True),
        (80, 65, 16, False),
        (80, 20, 257, False),
    ],
)
def test_strips_that_are_too_large_are_left_to_pytorch(queries, dst, channels, fits, usable):
    assert takes_strips(torch.randn(1, 320, channels).half(), queries, dst) == fits


@pytest.mark.parametrize("operator", FORMS)
def test_kernels_that_do_not_run_are_not_taken(operator, monkeypatch):
    tokens = torch.randn(1, 2, 320, 64).half()
    numbers = torch.arange(320).view(-1, 80)
    given = {
        "windows.attend": (
            SimpleNamespace(merged=None, precision="exact"),
            tokens,
            tokens,
            tokens,
            None,
            0.1,
        ),
        "attention.attend_weighed": (tokens, tokens, tokens, None, 0.1),
        "merging.match_local": (METRIC.half(), None, None, 40),
        "windows.merge_queries": (METRIC.half(), Strips(numbers, numbers[:, :20], 64)),
    }[operator]
    for reason in ("", "Triton is not installed"):
        monkeypatch.setattr(kernel_table, "why_unusable", lambda *_, reason=reason: reason)
        assert bool(find_form(operator, GPU, *given)) == (not reason)
        assert find_form(operator, CPU, *given) is None


@pytest.mark.parametrize("operator", FORMS)
def test_each_operator_says_why_it_is_slow_here(operator):
    assert why_unavailable(operator, CPU) == "there is no GPU"
