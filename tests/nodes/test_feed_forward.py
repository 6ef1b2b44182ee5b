"""Merging around the MLP, by an object patch on ``ff.forward``."""

import pytest
import torch
from support.unets import build_unet


@pytest.fixture
def mlp_lengths(unet):
    """Token counts that reach the first linear layer of the MLPs."""
    lengths = []
    handles = [
        module.register_forward_pre_hook(lambda _, inputs: lengths.append(inputs[0].shape[1]))
        for name, module in unet("SD15").model.named_modules()
        if name.endswith("ff.net.0.proj")
    ]
    yield lengths
    for handle in handles:
        handle.remove()


def test_the_mlp_gets_merged_tokens(unet, tome, denoise, mlp_lengths):
    denoise(tome(unet("SD15"), merge_mlp=True))
    assert set(mlp_lengths) == {128, 64, 16}


def test_without_asking_it_gets_all(unet, token_merge, denoise, mlp_lengths):
    denoise(token_merge(unet("SD15")))
    assert set(mlp_lengths) == {256, 64, 16}


def test_parameter_names_stay_so_that_loras_load(unet, token_merge):
    model = token_merge(unet("SD15"), merge_mlp=True)
    names = set(unet("SD15").model_state_dict())
    model.patch_model()
    try:
        assert set(model.model.state_dict()) == names
        assert any(name.endswith("ff.net.0.proj.weight") for name in names)
    finally:
        model.unpatch_model()


def test_unpatched_and_patched_runs_in_turn_do_not_leak(unet, token_merge, denoise):
    model, patched = unet("SD15"), token_merge(unet("SD15"), merge_mlp=True)
    unpatched, merged = denoise(model), denoise(patched)
    assert not torch.equal(unpatched, merged)
    for _ in range(2):
        assert torch.equal(denoise(patched), merged)
        assert torch.equal(denoise(model), unpatched)


def test_two_nodes_that_take_turns_share_one_patch_per_layer(unet, token_merge, denoise):
    model = token_merge(unet("SD15"), merge_mlp=True, end_percent=0.5)
    twice = token_merge(model, merge_mlp=True, start_percent=0.5, ratio=0.3)
    assert all(twice.object_patches[name] is patch for name, patch in model.object_patches.items())
    assert denoise(twice, steps=4).isfinite().all()


def give_own_module(model):
    """A clone with another UNet of equal weights, as several devices and hook LoRAs get."""
    return model.clone(model_override=build_unet.__wrapped__("SD15").get_clone_model_override())


def test_a_clone_with_a_module_of_its_own_runs_its_own_mlp(unet, token_merge, denoise):
    idle = {"start_percent": 0.998, "end_percent": 0.999}
    clone = give_own_module(token_merge(unet("SD15"), merge_mlp=True, **idle))
    alone = give_own_module(unet("SD15"))
    for model in (clone, alone):
        for name, weight in model.model.named_parameters():
            if name.endswith("ff.net.2.weight"):
                weight.data.mul_(3.0)
    changed = denoise(alone)
    assert (changed - denoise(unet("SD15"))).norm() > 0.01 * changed.norm()
    assert torch.equal(denoise(clone), changed)


def test_a_clone_with_a_module_of_its_own_merges_around_its_mlp(unet, token_merge, denoise):
    model = token_merge(unet("SD15"), merge_mlp=True)
    assert torch.equal(denoise(give_own_module(model)), denoise(model))


def test_another_nodes_patch_of_the_mlp_stays(unet, token_merge, denoise):
    model = unet("SD15").clone()
    name = "diffusion_model.input_blocks.1.1.transformer_blocks.0.ff.forward"
    model.add_object_patch(name, torch.zeros_like)
    alone = denoise(model)
    assert not torch.equal(alone, denoise(unet("SD15")))
    window = {"start_percent": 0.998, "end_percent": 0.999}
    assert torch.equal(denoise(token_merge(model, merge_mlp=True, **window)), alone)
