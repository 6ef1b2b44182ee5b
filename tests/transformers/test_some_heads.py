"""Where much has to be copied, some heads are computed at a time, and nothing else changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
import torch
from comfy.ldm.modules.attention import attention_pytorch
from support.exact_attention import Shape, attend_reduced
from support.one_head import compute_one_head_at_a_time
from support.small_models import IMAGES, VIDEOS, SampleRequest
from token_merge.nodes.hooks.attention.backend import Backend
from token_merge.nodes.hooks.attention.call import AttentionCall
from token_merge.nodes.hooks.attention.overrides import Override
from token_merge.nodes.hooks.run.report import RunReport
from token_merge.nodes.hooks.transformer import fewer_tokens
from token_merge.nodes.hooks.transformer.fewer_tokens import attend_to_fewer, choose_heads
from token_merge.tome_core import DownsampleSettings, MergeSettings, Settings, Stream, TokenGrid
from token_merge.tome_core.plan_layer import LayerPlan
from torch import Tensor

from benchmarks.speed.memory import peak_memory

SHAPE = Shape(Stream(TokenGrid(24, 24), before=32), heads=12, channels=32)
TENSORS = tuple(x.float().transpose(1, 2).contiguous().transpose(1, 2) for x in SHAPE.tensors)
"""In memory heads lie within tokens, as in models."""
ONE_TENSOR = SHAPE.heads * SHAPE.stream.length * SHAPE.channels * 4
"""The queries have so many bytes, and so has each of the others."""
SETTINGS: dict[str, Settings] = {
    "interleaved": DownsampleSettings(local_window=0),
    "stratified": DownsampleSettings(method="stratified", local_window=0),
    "stratified, factor 1.3": DownsampleSettings(method="stratified", local_window=0, factor=1.3),
    "area": DownsampleSettings(method="area", local_window=0),
    "merge": MergeSettings(local_window=0),
    "merged keys": MergeSettings(ratio=0.5, target="queries, keys and values"),
    "merged keys, all queries": MergeSettings(target="keys and values"),
    "merged queries": MergeSettings(target="queries"),
}
settings = pytest.mark.parametrize("setting", SETTINGS)


@dataclass
class Watched:
    """PyTorch's attention, which notes how many heads each call has."""

    heads: list[int] = field(default_factory=list)

    __name__ = "attention_pytorch"

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, heads: int, **kwargs: Any) -> Tensor:
        assert q.shape[1] == heads
        self.heads.append(heads)
        # An older ComfyUI's does not take fewer heads of keys.
        k, v = (x.repeat_interleave(heads // x.shape[1], dim=1) for x in (k, v))
        out: Tensor = attention_pytorch(q, k, v, heads, **kwargs)
        return out


@cache
def make_plan(setting: str) -> LayerPlan:
    with pytest.MonkeyPatch.context() as patching:
        return attend_reduced(SHAPE, [SETTINGS[setting]], TENSORS, patching).plan


def make_call(
    *, images: int = 1, key_heads: int = SHAPE.heads, mask: Tensor | None = None, split: bool = True
) -> AttentionCall:
    """split: heads are not to be joined."""
    q, k, v = (x.expand(images, -1, -1, -1) for x in TENSORS)
    keys = k[:, :key_heads], v[:, :key_heads]
    return AttentionCall(q, *keys, SHAPE.heads, mask, skip_output_reshape=split, options={})


def attend(setting: str, call: AttentionCall, function: Any, override: Any = None) -> Tensor:
    return attend_to_fewer(Backend(function, override), make_plan(setting), call, RunReport())


@pytest.mark.parametrize("name", ["Flux", "Lumina 2", "Qwen-Image", "Boogu", "Wan 2.1 T2V"])
@pytest.mark.parametrize("node", ["token_merge", "token_downsample"])
def test_pictures_are_those_of_all_heads_at_once(name, node, request, monkeypatch):
    (family,) = (each for each in (*IMAGES, *VIDEOS) if each.name == name)
    model = request.getfixturevalue(node)(family.build(), local_window="off")
    run = SampleRequest(steps=1)
    picture = run.sample(model, family)
    compute_one_head_at_a_time(monkeypatch)
    torch.testing.assert_close(run.sample(model, family), picture)


MASKS = {
    "no mask": None,
    "one mask": (SHAPE.stream.length,) * 2,
    "a mask of keys": (1, 1, 1, SHAPE.stream.length),
    "a mask of each head": (1, SHAPE.heads, *(SHAPE.stream.length,) * 2),
}


@settings
@pytest.mark.parametrize(
    ("mask", "key_heads", "split"),
    [
        ("no mask", 12, True),
        ("one mask", 12, False),
        ("a mask of keys", 3, True),
        ("a mask of each head", 3, False),
    ],
)
def test_each_head_reads_its_own_keys_and_mask(setting, mask, key_heads, split, monkeypatch):
    size = MASKS[mask]
    bias = None if size is None else torch.randn(size, generator=torch.Generator().manual_seed(0))
    call = make_call(key_heads=key_heads, mask=bias, split=split)
    at_once, apart = Watched(), Watched()
    expected = attend(setting, call, at_once)
    compute_one_head_at_a_time(monkeypatch)
    torch.testing.assert_close(attend(setting, call, apart), expected)
    assert at_once.heads == [12]
    assert apart.heads == [12 // key_heads] * key_heads


@settings
@pytest.mark.parametrize("split", [True, False])
def test_attention_takes_at_most_1_15_times_the_memory_of_the_unpatched_model(
    setting, split, monkeypatch
):
    """Counted with the queries, keys and values that the model holds."""
    monkeypatch.setattr(fewer_tokens, "LEAST_BYTES", 0)
    call = make_call(split=split)
    attend(setting, call, attention_pytorch)  # what is computed once and kept
    with peak_memory(torch.device("cpu")) as ours:
        attend(setting, call, attention_pytorch)
    with peak_memory(torch.device("cpu")) as unpatched:
        call.run(attention_pytorch)
    read = 3 * ONE_TENSOR
    assert read + ours.bytes <= 1.15 * (read + unpatched.bytes)


@settings
def test_few_bytes_are_copied_at_once(setting):
    watched = Watched()
    attend(setting, make_call(), watched)
    assert watched.heads == [SHAPE.heads]


@pytest.mark.parametrize("least", [0, 2 * ONE_TENSOR])
def test_heads_do_not_depend_on_the_number_of_images(least, monkeypatch):
    plan = make_plan("interleaved")
    monkeypatch.setattr(fewer_tokens, "LEAST_BYTES", least)
    one, four = (
        choose_heads(plan, make_call(images=images), adds_channels=False) for images in (1, 4)
    )
    assert one == four
    assert len(one) > 1


def test_copies_with_more_channels_count(monkeypatch):
    plan = make_plan("stratified")
    monkeypatch.setattr(fewer_tokens, "LEAST_BYTES", 0)
    assert len(choose_heads(plan, make_call(), adds_channels=False)) == 1
    assert len(choose_heads(plan, make_call(), adds_channels=True)) > 1


def test_another_node_is_given_all_heads(monkeypatch):
    compute_one_head_at_a_time(monkeypatch)
    watched = Watched()

    def of_another_node(function, *args, **kwargs):
        return function(*args, **kwargs)

    attend("interleaved", make_call(), watched, Override(of_another_node, "another node"))
    assert watched.heads == [SHAPE.heads]


def test_a_function_may_join_heads_whatever_it_is_asked_for():
    def joining(*args, skip_output_reshape=False, **kwargs):
        return attention_pytorch(*args, **kwargs)

    joining.__name__ = "attention_pytorch"
    call = make_call()
    expected = attend("interleaved", call, attention_pytorch)
    assert torch.equal(attend("interleaved", call, joining), expected)
