"""Refused before sampling, by name, value and range; never a torch traceback."""

import re

import pytest
import torch
from comfy.model_patcher import ModelPatcher
from token_merge.nodes import NODES

WITH_A_RANGE = [
    node for node in NODES if "start_percent" in {item.id for item in node.GET_SCHEMA().inputs}
]


def test_a_percent_range_that_ends_before_it_starts(unet, token_merge, token_downsample):
    for node in (token_merge, token_downsample):
        with pytest.raises(ValueError, match=r"start_percent is 0.6, expected less than end_"):
            node(unet("SD15"), start_percent=0.6, end_percent=0.4)


def test_a_factor_below_one(unet, token_downsample):
    with pytest.raises(ValueError, match=r"factor is 0.5, expected 1.0 to 8.0"):
        token_downsample(unet("SD15"), factor=0.5)


def test_a_stride_of_zero(unet, token_merge):
    with pytest.raises(ValueError, match="stride_y is 0, expected a whole number from 1 to 8"):
        token_merge(unet("SD15"), stride_y=0)


@pytest.mark.parametrize("not_a_model", [None, "model", torch.nn.Linear(1, 1)])
def test_what_is_no_model(not_a_model, token_merge, token_downsample):
    for node in (token_merge, token_downsample):
        with pytest.raises(TypeError, match=r"model is \w+, expected a MODEL"):
            node(not_a_model)


def test_a_model_without_a_diffusion_model_passes_through(token_merge, token_downsample, messages):
    cpu = torch.device("cpu")
    model = ModelPatcher(torch.nn.Module(), load_device=cpu, offload_device=cpu)
    for node in (token_merge, token_downsample):
        assert not node(model).wrappers
        assert "Module is not supported" in messages()[-1]


@pytest.mark.parametrize("name", ["SD15", "Flux"])
@pytest.mark.parametrize("end", [1.0, 0.5], ids=["any noise level", "some noise levels"])
def test_an_empty_batch_ends_as_without_our_nodes(name, end, unet, token_merge, denoise):
    with pytest.raises(RuntimeError) as unpatched:
        denoise(unet(name), batch=0)
    with pytest.raises(RuntimeError, match=re.escape(str(unpatched.value))):
        denoise(token_merge(unet(name), end_percent=end), batch=0)


def test_a_temporal_factor_below_one(flux, token_downsample):
    with pytest.raises(ValueError, match=r"temporal_factor is 0.5, expected 1.0 to 8.0"):
        token_downsample(flux, temporal_factor=0.5)


@pytest.mark.parametrize("value", ["0.5", None, [0.5]])
@pytest.mark.parametrize("name", ["ratio", "start_percent", "stride_x"])
def test_a_value_of_another_type_given_to_token_merge(name, value, unet, token_merge):
    with pytest.raises(ValueError, match=f"{name} is .*, expected "):
        token_merge(unet("SD15"), **{name: value})


@pytest.mark.parametrize("value", ["2", None, [2.0]])
@pytest.mark.parametrize("name", ["factor", "temporal_factor", "end_percent", "max_tokens"])
def test_a_value_of_another_type_given_to_token_downsample(name, value, unet, token_downsample):
    with pytest.raises(ValueError, match=f"{name} is .*, expected "):
        token_downsample(unet("SD15"), **{name: value})


@pytest.mark.parametrize("value", ["3", None, 1, ["auto"]])
def test_a_downsampling_that_is_no_option(value, unet, token_merge):
    with pytest.raises(ValueError, match=r"max_downsample is .*, expected one of 'auto', '1'"):
        token_merge(unet("SD15"), max_downsample=value)


def test_a_local_window_that_is_not_offered(flux, token_downsample):
    with pytest.raises(ValueError, match="local_window is '15', expected one of 'auto', 'off'"):
        token_downsample(flux, local_window="15")


@pytest.mark.parametrize("linked", ["start_percent", "end_percent"])
@pytest.mark.parametrize("node", WITH_A_RANGE)
def test_a_percent_that_comes_over_a_link_is_checked_when_the_node_runs(node, linked):
    """Before, ComfyUI gives None for it."""
    inputs = {"start_percent": 0.6, "end_percent": 0.4, linked: None}
    assert node.validate_inputs(**inputs) is True


@pytest.mark.parametrize("node", WITH_A_RANGE)
def test_a_start_after_the_end_is_refused_before_the_graph_runs(node):
    said = "start_percent is 0.6, expected less than end_percent, which is 0.4"
    assert node.validate_inputs(start_percent=0.6, end_percent=0.4).endswith(said)


def test_a_ratio_above_what_the_strides_allow_acts_as_the_most(unet, token_merge, denoise):
    most = denoise(token_merge(unet("SD15"), ratio=0.75))
    assert torch.equal(denoise(token_merge(unet("SD15"), ratio=0.9)), most)
