"""The simple nodes are the Advanced ones with their defaults."""

import inspect

import pytest
import torch
from token_merge.nodes.token_downsample import TokenDownsample, TokenDownsampleAdvanced
from token_merge.nodes.token_merge import TokenMerge, TokenMergeAdvanced

PAIRS = pytest.mark.parametrize(
    ("simple", "advanced"),
    [(TokenMerge, TokenMergeAdvanced), (TokenDownsample, TokenDownsampleAdvanced)],
)
MODELS = pytest.mark.parametrize("model", ["SD15", "SDXL", "Flux"])


def defaults(node):
    return {widget.id: widget.default for widget in node.GET_SCHEMA().inputs[1:]}


@MODELS
@PAIRS
def test_both_give_the_same_picture_by_default(simple, advanced, model, unet, denoise):
    pictures = [
        denoise(node.execute(unet(model), **defaults(node)).args[0], size=(32, 32), steps=2)
        for node in (simple, advanced)
    ]
    assert torch.equal(*pictures)


@PAIRS
def test_the_simple_inputs_are_those_of_the_advanced_node(simple, advanced):
    every = {each.id: each.as_dict() for each in advanced.GET_SCHEMA().inputs}
    few = {each.id: each.as_dict() for each in simple.GET_SCHEMA().inputs}
    assert few.items() <= every.items()
    assert len(few) <= 4


@PAIRS
def test_every_input_is_shown(simple, advanced):
    for node in (simple, advanced):
        for widget in node.GET_SCHEMA().inputs[1:]:
            assert not widget.advanced
            assert not widget.optional


def test_no_node_can_be_given_what_it_does_not_show(unet):
    assert "ratio" not in inspect.signature(TokenMerge.execute).parameters
    with pytest.raises(ValueError, match="no_such_input is no input of this node, expected only"):
        TokenMerge.execute(unet("SD15"), no_such_input=1)
