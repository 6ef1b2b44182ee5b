"""Refused before sampling, by name, value and range; never a torch traceback."""

import logging

import pytest
import torch


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
    assert f"{name} acts on UNets alone, not on Flux" in record.getMessage()


@pytest.mark.parametrize("name", ["keep_first_blocks", "keep_last_blocks"])
def test_a_negative_number_of_blocks(name, flux, token_merge, token_downsample):
    for node in (token_merge, token_downsample):
        with pytest.raises(ValueError, match=f"{name} is -1, expected a whole number from 0"):
            node(flux, **{name: -1})


def test_a_temporal_factor_below_one(flux, token_downsample):
    with pytest.raises(ValueError, match=r"temporal_factor is 0.5, expected 1.0 to 8.0"):
        token_downsample(flux, temporal_factor=0.5)
