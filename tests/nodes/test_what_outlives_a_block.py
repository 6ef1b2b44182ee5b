"""No tensor of ours outlives the block that made it, but for constants, which are made apart.

Newer versions of ComfyUI than those that run here record what a block allocates, and replay it.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from support.block_record import BlockRecord
from support.modes import EVERY_OTHER_OPTION, MODES, Mode
from support.our_kernels import take_here
from support.small_models import VIDEOS, SampleRequest
from support.unet_sampling import sample
from support.unets import build_unet
from token_merge.nodes.hooks.attention import plan_attention
from token_merge.nodes.hooks.run import kept_tensors
from token_merge.tome_core import constants
from token_merge.tome_core.faster_forms import FORMS

ALL_MODES = (
    Mode(
        "both nodes",
        (
            ("TokenMergeAdvanced", {"end_percent": 0.5}),
            ("TokenDownsampleAdvanced", {"start_percent": 0.5}),
        ),
    ),
    *MODES,
    EVERY_OTHER_OPTION,
)
BY_NAME = {mode.name: mode for mode in ALL_MODES}
(WAN,) = (family for family in VIDEOS if family.name == "Wan 2.1 T2V")


def list_blocks(model):
    unet = model.model.diffusion_model
    names = ("double_blocks", "single_blocks", "blocks")
    found = [block for name in names for block in getattr(unet, name, ())]
    return found or [
        each for each in unet.modules() if type(each).__name__ == "BasicTransformerBlock"
    ]


@pytest.fixture
def run(monkeypatch):
    """A run of three steps with a mode's nodes on a model, recorded; nothing is kept before it."""

    def once(name, mode, pauses=True, **options):
        model = BY_NAME[mode].put_on(WAN.build() if name == "Wan" else build_unet(name))
        record = BlockRecord(*list_blocks(model), **options)
        monkeypatch.setattr(constants, "PAUSES", [record.pause] if pauses else [])
        constants.forget_constants()
        with record:
            if name == "Wan":
                SampleRequest.with_tokens(WAN, 10, 12, steps=3, cfg=4.0).sample(model, WAN)
            else:
                sample(model, size=(24, 24), steps=3)
        return record

    return once


def thin_out(cases):
    short = {("Flux", "both nodes"), ("Wan", "local window"), ("SD15", "every option")}
    marks = pytest.mark.thorough
    return [pytest.param(*each, marks=() if each in short else marks) for each in cases]


@pytest.mark.parametrize(
    ("name", "mode"),
    thin_out([(name, mode) for name in ("Flux", "Wan", "SD15") for mode in BY_NAME]),
)
def test_nothing_outlives_its_block_but_constants(name, mode, run):
    record = run(name, mode)
    assert record.kept, "nothing was recorded"
    assert not record.left


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("Flux wide", "both nodes"),
        ("Flux wide", "local window"),
        ("Flux wide", "merged keys"),
        ("SD15 wide", "merged keys"),
    ],
)
def test_nothing_of_our_kernels_outlives_a_block_but_constants(name, mode, run, monkeypatch):
    take_here(monkeypatch, *FORMS, single_precision=True)
    record = run(name, mode, collects=True)
    assert record.kept and not record.left


def test_constants_that_are_not_made_apart_are_found(run):
    """So that the tests above can fail."""
    left = run("Flux", "both nodes", pauses=False).left
    assert "key_cells.py:list_key_cells" in left


def test_a_plan_that_is_kept_is_found(run, monkeypatch):
    """The same."""
    kept = []
    plan_layer = plan_attention.plan_layer
    monkeypatch.setattr(
        plan_attention, "plan_layer", lambda *args: kept.append(plan_layer(*args)) or kept[-1]
    )
    left = run("Flux", "both nodes").left
    assert "key_cells.py:draw" in left


def test_comfyuis_pause_is_taken_where_there_is_one(monkeypatch):
    """By a stand-in: no version that runs here has one."""
    prefetch = pytest.importorskip("comfy.model_prefetch")
    monkeypatch.delattr(prefetch, "pause_malloc_graph", raising=False)
    monkeypatch.setattr(kept_tensors, "PAUSES", entered := [])
    kept_tensors.register_pause()
    assert not entered
    monkeypatch.setattr(prefetch, "pause_malloc_graph", nullcontext, raising=False)
    kept_tensors.register_pause()
    assert entered == [nullcontext]
