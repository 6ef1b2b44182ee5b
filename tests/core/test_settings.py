import dataclasses

import pytest
from token_merge.tome_core.downsampling.settings import DownsampleSettings
from token_merge.tome_core.merging.settings import MergeSettings


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"ratio": 0.95}, "ratio is 0.95, expected 0.0 to 0.9"),
        ({"ratio": -0.1}, "ratio is -0.1"),
        ({"ratio": float("nan")}, "ratio is nan"),
        ({"stride_x": 0}, "stride_x is 0, expected a whole number from 1 to 8"),
        ({"stride_y": 2.0}, "stride_y is 2.0"),
        ({"max_downsample": 3}, "max_downsample is 3, expected one of 1, 2, 4, 8"),
        ({"target": "keys"}, "target is 'keys', expected one of 'queries, downsampled keys"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_merge_settings_are_refused_by_name_value_and_range(inputs, message):
    with pytest.raises(ValueError, match=message):
        MergeSettings(**inputs)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"factor": 0.5}, "factor is 0.5, expected 1.0 to 8.0"),
        ({"factor_level_2": 9.0}, "factor_level_2 is 9.0, expected 1.0 to 8.0"),
        ({"factor": float("nan")}, "factor is nan"),
        ({"method": "cubic"}, "method is 'cubic', expected one of 'interleaved'"),
    ],
)
def test_bad_downsample_settings_are_refused_by_name_value_and_range(inputs, message):
    with pytest.raises(ValueError, match=message):
        DownsampleSettings(**inputs)


@pytest.mark.parametrize(
    ("inputs", "acts_as"),
    [
        ({"ratio": 0.75}, 0.75),
        ({"ratio": 0.9}, 0.75),
        ({"ratio": 0.9, "stride_x": 4, "stride_y": 4}, 0.9),
        ({"ratio": 0.9, "stride_x": 1}, 0.5),
        ({"ratio": 0.9, "matching": "random"}, 0.9),
    ],
)
def test_the_ratio_acts_as_at_most_what_the_strides_allow_and_that_is_said(inputs, acts_as):
    settings = MergeSettings(**inputs)
    assert settings.acting_ratio == acts_as
    said = f"ratio {settings.ratio:g} acts as {acts_as:g}: each cell of"
    assert [said in remark for remark in settings.remarks] == [True] * (acts_as < settings.ratio)


@pytest.mark.parametrize("inputs", [{"method": "area"}, {"proportional_attention": False}])
def test_a_local_window_without_drawn_and_weighted_keys_is_left_out_and_that_is_said(inputs):
    (said,) = DownsampleSettings(local_window=16, **inputs).remarks
    assert "local_window is left out: it needs method 'interleaved' or 'stratified'" in said
    assert DownsampleSettings(local_window=16, **inputs).find_local_window(16) == 0
    assert not DownsampleSettings(**inputs).remarks


def test_settings_that_reduce_nothing_say_so():
    assert MergeSettings(ratio=0.0).is_identity
    assert MergeSettings(ratio=0.5, stride_x=1, stride_y=1).is_identity
    assert DownsampleSettings(factor=1.0).is_identity
    assert not DownsampleSettings(factor=1.0, factor_level_2=2.0).is_identity
    assert not MergeSettings().is_identity


ALL = {"queries", "keys and values"}


@pytest.mark.parametrize(
    ("settings", "downsample", "targets"),
    [
        (MergeSettings(), 1, ALL),
        (MergeSettings(), 2, set()),
        (MergeSettings(max_downsample=2), 2, ALL),
        (MergeSettings(target="keys and values"), 1, {"keys and values"}),
        (MergeSettings(target="queries"), 1, {"queries"}),
        (MergeSettings(merge_mlp=True), 1, {*ALL, "tokens of the MLP"}),
        (MergeSettings(merge_cross_attention=True), 1, {*ALL, "queries of cross-attention"}),
        (DownsampleSettings(), 1, {"keys and values"}),
        (DownsampleSettings(), 2, set()),
        (DownsampleSettings(factor_level_2=2.0), 2, {"keys and values"}),
        (DownsampleSettings(factor=1.0, max_tokens=9), 2, {"keys and values"}),
        (DownsampleSettings(max_tokens=9), 4, set()),
    ],
)
def test_settings_name_the_targets_that_they_reduce(settings, downsample, targets):
    assert settings.find_targets(downsample, (1, 2, 4)) == targets


@pytest.mark.parametrize("value", [None, "0.5", [0.5], True, 1j])
@pytest.mark.parametrize("name", ["ratio", "stride_x", "seed", "max_tokens"])
def test_a_value_of_another_type_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name} is .*, expected "):
        MergeSettings(**{name: value})


@pytest.mark.parametrize("value", [None, "True", [True], 1])
@pytest.mark.parametrize(
    "name",
    ["merge_mlp", "random_destinations", "proportional_attention", "exact_early_steps"],
)
def test_what_is_no_switch_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name} is .*, expected one of True, False"):
        MergeSettings(**{name: value})


@pytest.mark.parametrize("value", [None, ["local"], 1])
@pytest.mark.parametrize("name", ["matching", "target"])
def test_what_is_no_choice_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name} is .*, expected one of '"):
        MergeSettings(**{name: value})


def test_settings_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        MergeSettings().ratio = 0.1
