"""How often our hooks interrupt a compiled model: never more than a fixed number per layer.

Our hooks are not compiled, so each of them ends a graph and begins another. ComfyUI calls blocks
and patches in loops. Where a graph breaks within a loop, PyTorch compiles nothing of the function
with the loop, but only the modules that it calls, one by one. So one hook costs several graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from support.compiling import GraphCounter, compiled
from support.small_models import VIDEOS, SampleRequest
from support.unet_sampling import sample
from support.unets import CONFIGS

from benchmarks.markdown import write_table
from benchmarks.random_models import build_model

pytestmark = pytest.mark.usefixtures("compiling_as_on_a_gpu")

WAN = VIDEOS[0]


@dataclass(frozen=True)
class Compilable:
    """deepen: settings with so many blocks in a row. layers: transformer blocks then, for each of
    them. around: graphs beside those of the layers. sample: of a model, with a number of steps.
    """

    config: Any
    deepen: Callable[[int], dict[str, Any]]
    layers: int
    around: int
    sample: Callable[..., torch.Tensor]

    def build(self, depth):
        return build_model(self.config, self.deepen(depth))


def deepen_unet(depth):
    return {
        **CONFIGS["SD15 shallow"][1],
        "transformer_depth": [depth],
        "transformer_depth_output": [depth, depth],
        "transformer_depth_middle": depth,
    }


def deepen_flux(depth):
    return {**CONFIGS["Flux"][1], "depth": depth, "depth_single_blocks": depth}


def sample_wan(model, steps):
    return SampleRequest.with_tokens(WAN, 12, 16, steps=steps).sample(model, WAN)


MODELS = {
    "UNet": Compilable(
        CONFIGS["SD15"][0], deepen_unet, 4, 23, partial(sample, size=(16, 16), cfg=1.0)
    ),
    "Flux": Compilable(
        CONFIGS["Flux"][0], deepen_flux, 2, 11, partial(sample, size=(32, 32), cfg=1.0)
    ),
    "Wan": Compilable(
        WAN.config, lambda depth: {**WAN.settings, "num_layers": depth}, 1, 11, sample_wan
    ),
}
MERGE, DOWNSAMPLE = "token_merge", "token_downsample"
GRAPHS = [
    pytest.param("UNet", MERGE, {"target": "keys and values"}, 8, marks=pytest.mark.thorough),
    pytest.param("UNet", MERGE, {"merge_cross_attention": True}, 6, marks=pytest.mark.thorough),
    pytest.param("UNet", MERGE, {"merge_mlp": True}, 5, marks=pytest.mark.thorough),
    ("UNet", DOWNSAMPLE, {"local_window": "8"}, 8),
    pytest.param("Flux", DOWNSAMPLE, {}, 3, marks=pytest.mark.thorough),
    pytest.param("Wan", MERGE, {}, 7, marks=pytest.mark.thorough),
]
"""Each has a model, a node, inputs, and graphs of each layer. docs/speed.md has them as a table."""
MORE_GRAPHS = [
    ("UNet", MERGE, {}, 6),
    ("UNet", DOWNSAMPLE, {}, 6),
    ("UNet", MERGE, {"target": "queries, keys and values"}, 8),
    ("UNet", MERGE, {"target": "keys and values", "proportional_attention": False}, 6),
    ("UNet", DOWNSAMPLE, {"method": "stratified"}, 6),
    ("Flux", MERGE, {}, 3),
    ("Wan", DOWNSAMPLE, {}, 7),
]
"""These have the same for the long form: other settings start the same hooks."""


def pytest_generate_tests(metafunc):
    long = metafunc.config.getoption("long")
    if "inputs" in metafunc.fixturenames:
        graphs = [*GRAPHS, *MORE_GRAPHS] if long else GRAPHS
        metafunc.parametrize(("name", "node_name", "inputs", "of_each_layer"), graphs)
    elif "name" in metafunc.fixturenames:
        metafunc.parametrize("name", MODELS if long else ["UNet"])


def list_of_each_layer(node_name, inputs_by_model):
    """Graphs of each layer as they are tested, of every model."""
    tested = [getattr(each, "values", each) for each in (*GRAPHS, *MORE_GRAPHS)]
    return [
        next(
            str(graphs)
            for *others, graphs in tested
            if others == [model, node_name, inputs_by_model.get(model, {})]
        )
        for model in MODELS
    ]


def test_the_page_about_speed_has_these_graphs():
    """Local windows are the default of transformers."""
    around = [str(model.around) for model in MODELS.values()]
    rows = [
        ["unpatched", *("1" for _ in MODELS)],
        ["with our nodes: around the transformer blocks", *around],
        ["and in each block: Token Merge", *list_of_each_layer(MERGE, {})],
        ["Token Downsample", *list_of_each_layer(DOWNSAMPLE, {})],
        [
            "Token Downsample with local windows",
            *list_of_each_layer(DOWNSAMPLE, {"UNet": {"local_window": "8"}}),
        ],
    ]
    table = write_table(["graphs in one call", *MODELS], rows)
    page = Path(__file__).parents[2] / "docs" / "speed.md"
    assert table in page.read_text(encoding="utf-8")


@pytest.mark.thorough
def test_a_call_of_an_unpatched_model_is_one_graph(name):
    counter = GraphCounter()
    MODELS[name].sample(compiled(MODELS[name].build(1), counter), steps=2)
    assert counter.runs == 2


def test_each_layer_is_few_graphs(name, node_name, inputs, of_each_layer, request):
    model, counter = MODELS[name], GraphCounter()
    reduced = request.getfixturevalue(node_name)(model.build(1), **inputs)
    expected = model.sample(reduced, steps=2)
    found = model.sample(compiled(reduced, counter), steps=2)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
    assert counter.runs <= 2 * (model.around + of_each_layer * model.layers)


@pytest.mark.thorough
def test_twice_the_layers_are_no_more_graphs_each(name, token_merge):
    model, counter = MODELS[name], GraphCounter()
    of_each_layer = {"UNet": 8, "Flux": 3, "Wan": 7}[name]
    model.sample(compiled(token_merge(model.build(2)), counter), steps=1)
    assert counter.runs <= model.around + of_each_layer * 2 * model.layers
