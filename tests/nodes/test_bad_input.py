"""Refused before sampling, by name, value and range; never a torch traceback."""

import logging

import pytest
import torch
from token_merge.nodes.token_downsample import TokenDownsample
from token_merge.nodes.token_merge import TokenMerge


def test_a_ratio_above_what_the_strides_allow(unet, token_merge):
    with pytest.raises(ValueError, match=r"ratio is 0.8, expected 0.0 to 0.75 with stride_x 2"):
        token_merge(unet("SD15"), ratio=0.8)


def test_a_window_that_ends_before_it_starts(unet, token_merge, token_downsample):
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


def test_soft_weights_on_a_model_whose_keys_carry_positions(flux, token_merge):
    with pytest.raises(ValueError, match=r"matching is 'toma', expected 'local', .* with Flux"):
        token_merge(flux, matching="toma")


@pytest.mark.parametrize("name", ["merge_mlp", "merge_cross_attention"])
def test_what_acts_on_unets_alone_is_said_once(name, flux, token_merge, caplog):
    with caplog.at_level(logging.INFO, logger="token_merge"):
        token_merge(flux, **{name: True})
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"{name} acts on UNets only, not on Flux" in record.getMessage()


@pytest.mark.parametrize("name", ["keep_first_blocks", "keep_last_blocks"])
def test_a_negative_number_of_blocks(name, flux, token_merge, token_downsample):
    for node in (token_merge, token_downsample):
        with pytest.raises(ValueError, match=f"{name} is -1, expected a whole number from 0"):
            node(flux, **{name: -1})


def test_a_temporal_factor_below_one(flux, token_downsample):
    with pytest.raises(ValueError, match=r"temporal_factor is 0.5, expected 1.0 to 8.0"):
        token_downsample(flux, temporal_factor=0.5)


@pytest.mark.parametrize("value", ["0.5", None, [0.5]])
@pytest.mark.parametrize("name", ["ratio", "start_percent", "stride_x", "keep_first_blocks"])
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


@pytest.mark.parametrize(
    "linked", ["ratio", "start_percent", "end_percent", "stride_x", "stride_y", "matching"]
)
def test_an_input_that_comes_over_a_link_is_checked_when_the_node_runs(linked):
    """Before, ComfyUI gives None for it."""
    inputs = {"ratio": 0.5, "start_percent": 0.0, "end_percent": 1.0, "stride_x": 2}
    inputs |= {"stride_y": 2, "matching": "local", linked: None}
    assert TokenMerge.validate_inputs(**inputs) is True
    assert TokenDownsample.validate_inputs(start_percent=None, end_percent=0.5) is True


def test_what_two_inputs_do_wrong_together_is_refused_before_the_graph_runs():
    refusal = TokenMerge.validate_inputs(0.8, 0.0, 1.0, 2, 2)
    assert refusal == "ratio is 0.8, expected 0.0 to 0.75 with stride_x 2 and stride_y 2"
    window = TokenMerge.validate_inputs(None, 0.6, 0.4, 2, 2)
    assert window == TokenDownsample.validate_inputs(0.6, 0.4)
    assert window == "start_percent is 0.6, expected less than end_percent, which is 0.4"


@pytest.mark.parametrize(
    "inputs", [{"method": "area"}, {"method": "nearest-exact"}, {"proportional_attention": False}]
)
def test_a_local_window_without_drawn_and_weighted_keys(inputs, flux, token_downsample):
    with pytest.raises(ValueError, match="local_window is 16, expected auto or off with method"):
        token_downsample(flux, local_window="16", **inputs)
    token_downsample(flux, local_window="auto", **inputs)


def test_a_local_window_that_is_not_offered(flux, token_downsample):
    with pytest.raises(ValueError, match="local_window is '15', expected one of 'auto', 'off'"):
        token_downsample(flux, local_window="15")


def test_a_local_window_is_checked_before_the_graph_runs():
    refused = TokenDownsample.validate_inputs(method="area", local_window="8")
    assert "local_window is 8, expected auto or off with method 'area'" in refused
    assert TokenDownsample.validate_inputs(method="area", local_window="auto") is True
