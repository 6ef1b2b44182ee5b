"""How long a plan is kept, and that different pictures never share one."""

import pytest
import torch
from comfy.patcher_extension import WrappersMP
from token_merge.nodes.hooks import planner


@pytest.fixture
def plans(monkeypatch):
    """Every plan that is made, in order."""
    made = []
    plan_parts = planner.plan_parts

    def note(*args):
        made.append(plan_parts(*args))
        return made[-1]

    monkeypatch.setattr(planner, "plan_parts", note)
    return made


@pytest.mark.parametrize(("refresh_steps", "count"), [(0, 3 * 4), (1, 4), (2, 2), (3, 2), (100, 1)])
def test_plans_are_shared_and_kept(refresh_steps, count, plans, unet, token_merge, denoise):
    denoise(token_merge(unet("SD15"), refresh_steps=refresh_steps), steps=4)
    assert len(plans) == count


def test_a_kept_plan_ends_with_its_run(unet, token_merge, denoise):
    model = token_merge(unet("SD15"), refresh_steps=100)
    first = denoise(model)
    denoise(model, size=(24, 8))
    assert torch.equal(denoise(model), first)


@pytest.mark.parametrize("refresh_steps", [1, 3])
def test_a_shared_plan_is_the_same_whatever_the_batch_split(
    refresh_steps, unet, token_merge, denoise, monkeypatch
):
    model = token_merge(unet("SD15"), refresh_steps=refresh_steps)
    together = denoise(model, steps=4)
    monkeypatch.setattr(type(model), "get_free_memory", lambda *_: 1)
    apart = denoise(model, steps=4)
    torch.testing.assert_close(apart, together, rtol=1e-4, atol=1e-4 * together.abs().max().item())


def sample_in_tiles(apply, call):
    """As tiled diffusion: the upper and the lower half, each by a call of its own."""
    upper, lower = call["input"].chunk(2, dim=2)
    halves = [apply(half.clone(), call["timestep"], **call["c"]) for half in (upper, lower)]
    return torch.cat(halves, dim=2)


def tile_around(model):
    """Tiles by a model function wrapper, around all our hooks."""
    model.set_model_unet_function_wrapper(sample_in_tiles)


def tile_inside(model):
    """Tiles by a wrapper around the diffusion model, between our hooks."""

    def wrap(executor, x, *args, **kwargs):
        halves = [executor(half.clone(), *args, **kwargs) for half in x.chunk(2, dim=2)]
        return torch.cat(halves, dim=2)

    model.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "tiles", wrap)


@pytest.mark.parametrize("tile", [tile_around, tile_inside])
@pytest.mark.parametrize("refresh_steps", [1, 2, 100])
def test_tiles_of_one_step_never_share_a_plan(
    refresh_steps, tile, plans, unet, token_merge, denoise
):
    model = token_merge(unet("SD15"), refresh_steps=refresh_steps)
    tile(model)
    denoise(model, size=(32, 16), steps=3)
    assert len(plans) == 2 * 3, "each tile of each step has a plan of its own"


def test_tiles_stay_as_near_to_plain_as_without_sharing(unet, token_merge, denoise):
    def denoise_in_tiles(model):
        model = model.clone()
        model.set_model_unet_function_wrapper(sample_in_tiles)
        return denoise(model, size=(32, 16), steps=4)

    plain = denoise_in_tiles(unet("SD15"))
    errors = [
        (denoise_in_tiles(token_merge(unet("SD15"), ratio=0.7, refresh_steps=n)) - plain).norm()
        for n in (0, 1)
    ]
    assert errors[1] < 1.3 * errors[0]
