"""What a node writes on itself: through the server's own call, where there is a server."""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace

import pytest
import torch
from comfy.model_management import InterruptProcessingException
from comfy.model_patcher import ModelPatcher
from comfy_api.latest import io
from support.gpu_tensor import DEVICE
from support.other_device_run import put_on_other_device
from support.small_models import UNREACHED
from token_merge.nodes.hooks.attach import attach, listen
from token_merge.nodes.hooks.run import node_text
from token_merge.nodes.hooks.run.node_text import END, RUNNING, STOPPED, write_on_node
from token_merge.nodes.kernels import kernel_table, usable
from token_merge.tome_core import DownsampleSettings, MergeSettings
from token_merge.tome_core.schedule import PercentRange

PAGE = "the page that queued the prompt"
IN_ALL_STEPS = DownsampleSettings(exact_early_steps=False)


class Written(list):
    """(node, text in one line), in the order in which the server was told. raw: as it was told."""

    def __init__(self):
        self.raw = []

    def add(self, text, node, sid):
        assert sid == PAGE, "the text is for no other page"
        assert text.endswith(END), "our script knows our texts by it"
        self.raw.append(text.removesuffix(END))
        self.append((node, " ".join(text.split())))


@pytest.fixture
def written(monkeypatch):
    found = Written()
    server = ModuleType("server")
    instance = SimpleNamespace(send_progress_text=found.add, client_id=PAGE)
    server.PromptServer = SimpleNamespace(instance=instance)
    monkeypatch.setitem(sys.modules, "server", server)
    return found


def test_each_node_of_a_chain_has_its_own_lines(unet, denoise, written):
    model = attach(unet("SD15"), MergeSettings(ratio=0.5, target="queries"), "4")
    denoise(attach(model, DownsampleSettings(), "5:2"))
    (first, merged), (second, downsampled) = written[2:]
    assert written[:2] == [("4", RUNNING), ("5:2", RUNNING)]
    assert (first, second) == ("4", "5:2")
    assert merged.endswith(" 3 layers: 256 tokens, attention computes 128 queries")
    assert downsampled.endswith(" 3 layers: 256 tokens, attention reads 64 keys")


def test_a_long_run_tells_meanwhile_what_was_done_so_far(unet, denoise, written, monkeypatch):
    monkeypatch.setattr(node_text, "SECONDS_BETWEEN", 0.0)
    denoise(attach(unet("SD15"), MergeSettings(target="queries"), "4"), steps=3)
    done = "Reads 80% of the pairs in 3 of 3 layers 3 layers: 256 tokens, attention computes"
    assert [text for _, text in written] == [RUNNING, RUNNING, *[f"{done} 204 queries"] * 3]


class Triton:
    """Keeps what stands on the node while a kernel is compiled and tried, which fails."""

    def __init__(self, written):
        self.written, self.during = written, []

    def try_out(self, *given):
        self.during += self.written[-1:]
        raise RuntimeError("no compiler was found")


@pytest.fixture
def triton(written, monkeypatch):
    """As on a GPU whose kernels were not tried yet."""
    there = Triton(written)
    monkeypatch.setattr(usable, "load_kernel", lambda name: there)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 9))
    monkeypatch.setattr(kernel_table, "HALF", (torch.float32,))  # of the small model
    of_gpu = SimpleNamespace(name="", major=8, minor=9, multi_processor_count=1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: of_gpu)
    usable._try_once.cache_clear()
    yield there
    usable._try_once.cache_clear()


def test_while_kernels_are_compiled_the_node_says_so_and_then_what_it_did(
    flux, denoise, written, triton, monkeypatch
):
    model = put_on_other_device(attach(flux, IN_ALL_STEPS, "4"), monkeypatch)
    denoise(model, size=(32, 32), steps=1)
    line = ("4", "Preparing our kernels for this GPU, once: some seconds")
    assert triton.during == [line]
    *before, (_, last) = written
    assert before == [("4", RUNNING), line, ("4", RUNNING)], "gone before the layers are computed"
    assert last.startswith("Reads 54% of the pairs in 2 of 2 layers, local windows")
    denoise(model, size=(32, 32), steps=1)
    assert written.count(line) == 1, "kernels are compiled once"


def test_kernels_that_are_compiled_outside_of_a_run_are_told_nowhere(written, triton):
    assert "no compiler was found" in usable.why_unusable("windows", DEVICE)
    assert written == []


def test_two_short_lines_say_what_matters_most(flux, unet, denoise, written):
    denoise(attach(flux, IN_ALL_STEPS, "4"), size=(32, 32), steps=1)
    denoise(attach(unet("SD15"), DownsampleSettings(max_tokens=100), "4"))
    denoise(attach(unet("SD15"), DownsampleSettings(factor=1, max_tokens=999), "4"))
    denoise(
        attach(unet("SD15"), MergeSettings(percent_range=PercentRange(0.99, 1.0)), "4"), steps=1
    )
    first = [text.split("  \n")[:2] for text in written.raw if text != RUNNING]
    assert first == [
        ["Reads 54% of the pairs", "in 2 of 2 layers, local windows"],
        ["Reads 25% of the pairs", "in 3 of 6 layers"],
        ["Not reduced: 256 tokens are within", "the factor and max_tokens already"],
        ["Not reduced: none of its steps lies", "in 99% to 100% of the schedule"],
    ]


def test_between_two_texts_are_some_seconds(unet, denoise, written, monkeypatch):
    later = time.monotonic() + 2 * node_text.SECONDS_BETWEEN
    monkeypatch.setattr(node_text, "time", SimpleNamespace(monotonic=lambda: later))
    denoise(attach(unet("SD15"), MergeSettings(), "4"), steps=3)
    assert len(written) == 3, "at the start, after the first seconds, and at the end"


def test_a_model_that_is_left_alone_says_so_when_the_node_is_applied(written):
    attach(UNREACHED[0].build(), MergeSettings(), "4")
    ((node, text),) = written
    assert node == "4"
    assert text.startswith(
        "PixArt is not supported: nothing is changed. See Node Info for the list. Why: its"
    )
    assert written.raw[0].split("  \n")[:2] == [
        "PixArt is not supported: nothing is",
        "changed. See Node Info for the list.",
    ]


def test_a_model_that_is_not_known_says_so_in_two_lines(written):
    class UnknownModel(torch.nn.Module):
        diffusion_model = torch.nn.Identity()

    attach(ModelPatcher(UnknownModel(), *[torch.device("cpu")] * 2), MergeSettings(), "4")
    ((_, text),) = written
    assert text == ("UnknownModel is not supported: nothing is changed. See Node Info for the list")


def test_a_known_model_that_a_pack_computes_itself_is_named_with_the_pack(written):
    """As Nunchaku's Flux: a class of its own within ComfyUI's Flux."""

    class ComfyFluxWrapper(torch.nn.Module):
        __module__ = "/comfyui/custom_nodes/ComfyUI-nunchaku.wrappers.flux"

    class Flux(torch.nn.Module):
        diffusion_model = ComfyFluxWrapper()

    attach(ModelPatcher(Flux(), *[torch.device("cpu")] * 2), MergeSettings(), "4")
    ((_, text),) = written
    assert text == (
        "Flux as ComfyUI-nunchaku computes it is not supported: nothing is changed. See Node Info "
        "for the list"
    )


def test_lines_are_short_and_break_on_nodes_that_read_html_and_on_those_that_read_markdown(written):
    write_on_node("4", "one line\n" + "many words " * 9)
    first, *others = written.raw[0].split("  \n")
    assert first == "one line"
    assert len(others) == 3
    assert max(map(len, others)) <= 36


def test_a_run_that_is_stopped_says_so(unet, denoise, written):
    def stop(*_):
        raise InterruptProcessingException

    with pytest.raises(InterruptProcessingException):
        denoise(attach(unet("SD15"), MergeSettings(), "4"), steps=3, callback=stop)
    assert written[-1] == ("4", STOPPED)


def test_inputs_that_reduce_nothing_say_so_when_the_node_is_applied(unet, written):
    attach(unet("SD15"), MergeSettings(ratio=0.0), "4")
    assert written == [("4", "Changes nothing: with these inputs no layer has fewer tokens")]


def test_what_was_clamped_or_left_out_is_told(flux, denoise, written):
    denoise(attach(flux, MergeSettings(ratio=0.9, merge_mlp=True), "4"), steps=1)
    (_, text) = written[-1]
    assert "ratio 0.9 acts as 0.75" in text
    assert "merge_mlp acts on UNets only" in text


def test_nothing_is_told_without_a_node_a_page_or_a_server(unet, denoise, written, monkeypatch):
    denoise(attach(unet("SD15"), MergeSettings()), steps=1)
    sys.modules["server"].PromptServer.instance.client_id = None
    denoise(attach(unet("SD15"), MergeSettings(), "4"), steps=1)
    monkeypatch.delattr(sys.modules["server"].PromptServer, "instance")
    denoise(attach(unet("SD15"), MergeSettings(), "4"), steps=1)
    assert written == []


def test_a_listener_hears_of_each_run_of_its_clone_alone(unet, denoise):
    heard = []
    model = attach(unet("SD15"), DownsampleSettings())
    listening = listen(model, heard.append)
    denoise(model)
    assert heard == []
    denoise(listening)
    denoise(listening)
    assert heard == [(("Token Downsample", "3 layers: 256 tokens, attention reads 64 keys"),)] * 2


def test_a_model_without_our_nodes_has_nothing_to_hear(unet, denoise):
    denoise(listen(unet("SD15"), pytest.fail))


def test_every_node_asks_the_server_for_its_own_number():
    from token_merge.nodes import NODES

    for node in NODES:
        assert io.Hidden.unique_id in node.GET_SCHEMA().hidden
