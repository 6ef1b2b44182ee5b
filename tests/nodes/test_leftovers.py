"""Nothing of a finished or failed run stays alive: no plan, no tensor, no record of the run."""

from __future__ import annotations

import gc
import inspect
import sys

import pytest
import torch
from comfy.model_management import current_loaded_models
from comfy.patcher_extension import WrappersMP
from support.fuzzing import SOAK

from devtools.leftovers import OF_A_RUN, ROOMS, count_leftovers

RUNS = SOAK.cases or 2
MODES = {
    "merge": ("merge", {}),
    "global": ("merge", {"matching": "global", "merge_mlp": True, "merge_cross_attention": True}),
    "interleaved": ("downsample", {"local_window": "off"}),
    "window": ("downsample", {"local_window": "8"}),
    "area": ("downsample", {"method": "area"}),
}


class StoppedError(Exception):
    """What the test raises within a run."""


def count_tensors():
    gc.collect()
    return sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects())


@pytest.fixture(scope="module", autouse=True)
def only_new_objects(unet):
    """What other tests and imports left takes no time, and is not counted."""
    for name in ("SD15", "Flux"):
        unet(name)
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def run(token_merge, token_downsample, unet, denoise):
    def once(name, mode, stops):
        kind, inputs = MODES[mode]
        node = token_merge if kind == "merge" else token_downsample
        model = node(unet(name), **inputs)

        def stop(executor, *args, **kwargs):
            executor(*args, **kwargs)
            raise StoppedError

        if not stops:
            denoise(model)
        else:
            model.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "stop", stop)
            with pytest.raises(StoppedError):
                denoise(model)
        current_loaded_models.clear()

    return once


@pytest.mark.parametrize("name", ["SD15", "Flux"])
@pytest.mark.parametrize("mode", MODES)
def test_runs_leave_nothing(name, mode, run):
    for stops in (False, True):
        run(name, mode, stops)
    # What is kept for a grid, in caches of limited length, is there now.
    before = count_tensors()
    for stops in [False, True] * (RUNS // 2):
        run(name, mode, stops)
        assert count_leftovers() == {}
    assert count_tensors() == before
    SOAK.count("leftovers", "half of the runs finished, half stopped: nothing left")


def test_the_classes_that_are_counted_are_those_of_the_pack():
    modules = [module for name, module in sys.modules.items() if any(x in name for x in ROOMS)]
    ours = {
        name
        for module in modules
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and kind.__module__ == module.__name__
    }
    assert ours >= OF_A_RUN


def test_a_plan_that_is_kept_is_counted(run, monkeypatch):
    """So that the other tests can fail."""
    from token_merge.nodes.hooks.attention import plan_attention

    kept = []
    plan_layer = plan_attention.plan_layer
    monkeypatch.setattr(
        plan_attention, "plan_layer", lambda *args: kept.append(plan_layer(*args)) or kept[-1]
    )
    run("SD15", "merge", stops=False)
    assert count_leftovers()["MergePlan"] == len(kept)


@pytest.fixture
def count_left(unet, denoise):
    """How many numbers of the keys and values that attention got are there before the MLP."""
    block = unet("SD15").model.diffusion_model.input_blocks[1][1].transformer_blocks[0]
    given, left = [], []

    def note_given(module, args, kwargs):
        given.extend(kwargs[name] for name in ("context", "value"))

    def note_left(module, args):
        left.extend(x.numel() for x in given)
        given.clear()

    def count(model):
        denoise(model)
        return left

    hooks = [
        block.attn1.register_forward_pre_hook(note_given, with_kwargs=True),
        block.ff.net[0].register_forward_pre_hook(note_left),
    ]
    yield count
    for hook in hooks:
        hook.remove()


@pytest.mark.parametrize("mode", ["merge", "global", "interleaved", "area"])
def test_keys_and_values_are_freed_before_the_mlp(
    mode, token_merge, token_downsample, unet, count_left
):
    """ComfyUI's block holds what attention was given until its end; memory peaks in the MLP."""
    kind, inputs = MODES[mode]
    node = token_merge if kind == "merge" else token_downsample
    left = count_left(node(unet("SD15"), **inputs))
    assert left and not any(left)
