"""Attention of other nodes beside ours on the small trained models: no loss comes in silence.

``--write-compatibility`` writes what is found here into docs/compatibility.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from comfy.model_patcher import ModelPatcher
from support import other_attention as others
from token_merge.nodes.hooks.attach import listen
from token_merge.nodes.hooks.run.report import Lines
from torch import Tensor

from benchmarks import ours
from benchmarks.quality import batches, metrics, sampling
from benchmarks.quality.effort import EffortWatch
from benchmarks.quality.regimes import Regime
from benchmarks.quality.sampling import Batch
from benchmarks.trained import weights
from benchmarks.trained.places import WEIGHTS

from .others.attention import as_on_a_gpu

pytestmark = pytest.mark.thorough

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"
HEADING = "## Attention of other nodes"
SECTION = re.compile(rf"^{HEADING}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+\.\d")
COUNT_OF_LAYERS = re.compile(r" \(block .*|^\d+ layers?(:| skipped:) ")
INTRODUCTION = """\
A *backend* computes the same attention, only faster: SageAttention, FlashAttention, or
ComfyUI's Model Attention Backend. Local windows stay beside it, and it computes the rest; on a GPU
it computes all of a layer where that is [faster](speed.md#beside-a-faster-attention-function),
unless the user asks for the reduction by `reduce_small_layers` or a size as `local_window`. On a
UNet, and without a local window, it computes attention on the tokens that remain. Where it rounds
queries and keys to 8 bits, as SageAttention and ComfyUI's INT8 attention do, our kernel does so,
too: "in local windows in INT8, as SageAttention (KJNodes) computes". An *algorithm*, such as
ComfyUI's Model Sparse Attention, changes what attention is. A layer with a local window is left to
it, as to any node that our table does not have, unless the user sets `local_window` to a size.
Without a local window, as on UNets, both act. The table of known nodes is
`nodes/hooks/attention/override_table.py`.

The figures are dB against the unpatched model without any of the nodes. They are of the small
trained models, with 8 steps and our defaults. Keys are weighed by extra channels, as on a GPU. The
other nodes are stand-ins for a processor that behave as their sources do, so their own dB say
little of the real ones. Ours before or after the other give the same picture, to the bit. `python
-m devtools test tests/interplay/test_trained_models.py --all --write-compatibility` measures this
and writes it.
"""
REGIME = Regime("euler", "simple", 8)
FEWER_STEPS = {"Flux": 5, "Wan": 5}
"""Our nodes take less time than these steps."""
NODES = {"Token Downsample": "TokenDownsample", "Token Merge": "TokenMerge"}


def use_comfy_kitchen(model: ModelPatcher) -> ModelPatcher:
    with pytest.MonkeyPatch.context() as patching:
        setter = others.set_model_optimized_attention
        patching.setattr(ModelPatcher, setter.__name__, setter, raising=False)
        return others.patch_comfy_kitchen(model)


OTHERS: dict[str, Callable[[ModelPatcher], ModelPatcher]] = {
    "Patch Sage Attention KJ": others.patch_sage,
    "Model Attention Backend, INT8": use_comfy_kitchen,
    "Model Sparse Attention": others.patch_sparse,
    "a pack that computes the first step exactly": others.patch_gate,
    "an unknown node": others.patch_unknown,
}


@dataclass(frozen=True)
class Found:
    """error: in dB against the unpatched model. pairs: as a share of its. said: by our node."""

    decibels: float
    pairs: float
    said: tuple[str, ...] = ()


@cache
def load(kind: str) -> tuple[ModelPatcher, Batch]:
    count, tokens = (1, 16) if kind == "Wan" else (2, 32)
    (batch,) = batches.make_batches(kind.lower(), count, tokens)
    return weights.load(WEIGHTS[kind.lower()]), batch


@cache
def paint_unpatched(kind: str) -> tuple[Tensor, int]:
    """Its picture, and the pairs that its attention compares."""
    model, batch = load(kind)
    watch = EffortWatch()
    picture = sampling.pictures(model, sampling.sample(watch.attach(model), batch, REGIME))
    return picture, watch.effort.pairs


@cache
def measure(kind: str, other: str = "", node: str = "", steps: int | None = None) -> Found:
    """The other node and ours on a model, without either where it has no name."""
    model, batch = load(kind)
    patched = OTHERS[other](model) if other else model
    said: list[str] = []
    if node:
        patched = listen(ours.apply(NODES[node], patched), lambda lines: _note(lines, said))
    watch = EffortWatch()
    # A watch would hide from our node what the other one is, and counts nothing of other kernels.
    watched = watch.attach(patched) if node and not other else patched
    with as_on_a_gpu(), pytest.MonkeyPatch.context() as patching:
        setter = others.set_model_optimized_attention
        patching.setattr(ModelPatcher, setter.__name__, setter, raising=False)
        latent = sampling.sample(watched, batch, REGIME.with_steps(steps))
    unpatched, pairs = paint_unpatched(kind)
    error = metrics.squared_error(sampling.pictures(model, latent), unpatched)
    return Found(float(-10 * error.log10().mean()), watch.effort.pairs / pairs, tuple(said))


def _note(lines: Lines, said: list[str]) -> None:
    said[:] = [COUNT_OF_LAYERS.sub("", line) for _, line in lines]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("kind", FEWER_STEPS)
def test_what_costs_more_than_fewer_steps_is_left_out_and_said(kind, node, other):
    both, alone = measure(kind, other, node), measure(kind, other)
    fewer = measure(kind, steps=FEWER_STEPS[kind])
    if any("in local windows beside" in said for said in both.said):
        assert both.decibels > fewer.decibels + 3
    else:
        assert any("is at work; use one of the two" in said for said in both.said)
        assert both.decibels == pytest.approx(alone.decibels)


def test_the_document_says_it(pytestconfig):
    if pytestconfig.getoption("write_compatibility"):
        text = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(SECTION.sub(lambda _: write_section() + "\n\n", text), encoding="utf-8")
    found = SECTION.search(DOCUMENT.read_text(encoding="utf-8"))
    assert found
    written, measured = found[0].strip(), write_section()
    assert NUMBER.sub("#", written) == NUMBER.sub("#", measured)
    # Other processors round otherwise, of which most is seen in the smallest errors.
    stated, now = ([min(float(one), 50) for one in NUMBER.findall(x)] for x in (written, measured))
    assert stated == pytest.approx(now, abs=1)


def write_error(found: Found) -> str:
    return "no error" if math.isinf(found.decibels) else f"{found.decibels:.1f}"


def write_section() -> str:
    lines = [HEADING, "", INTRODUCTION]
    lines += ["| | the other alone | Token Downsample | Token Merge | Token Downsample says |"]
    lines += ["| --- | ---: | ---: | ---: | --- |"]
    for kind, steps in FEWER_STEPS.items():
        fewer = measure(kind, steps=steps)
        alone = [measure(kind, node=node) for node in NODES]
        cells = " | ".join(f"{each.decibels:.1f} ({each.pairs:.0%} of the pairs)" for each in alone)
        lines += [f"| {kind}, no other node | | {cells} | |"]
        for other in OTHERS:
            both = [measure(kind, other, node) for node in NODES]
            numbers = [measure(kind, other), *both]
            cells = " | ".join(map(write_error, numbers))
            lines += [f"| {kind}, {other} | {cells} | {both[0].said[0]} |"]
        lines += [f"| {kind}, {steps} of the 8 steps | {fewer.decibels:.1f} | | | |"]
    return "\n".join(lines)
