"""The counts of whole blocks are those of what really runs, and the estimate's sums are right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from support.gpu_attention import take_pytorch_attention
from torch import Tensor

from benchmarks.markdown import replace_table
from benchmarks.speed import cli
from benchmarks.speed.cost import transformer_blocks
from benchmarks.speed.cost.block_calls import count_block, count_on
from benchmarks.speed.cost.cases import PLAIN, QUICK_SHAPES, SETTINGS, Setting, Shape
from benchmarks.speed.cost.costs import find_cost, find_first
from benchmarks.speed.cost.counting import Count
from benchmarks.speed.cost.gpus import LAUNCH_SECONDS, Gpu
from benchmarks.speed.cost.kernels import Kernel
from benchmarks.speed.cost.stand_in_gpu import StandInGpu
from benchmarks.speed.diffusion_transformers import FLUX_SHAPED, WAN_SHAPED

shapes = pytest.mark.parametrize("shape", QUICK_SHAPES, ids=lambda shape: shape.name)
settings = pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)


@pytest.fixture(autouse=True)
def pytorch_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    take_pytorch_attention(monkeypatch)


BY_PRODUCTS = {"native_layer_norm", "_embedding_bag_forward_only"}
"""A CPU's kernels give other sums and places beside their result than a GPU's."""


def read(counted: Count) -> list[tuple[Any, ...]]:
    """Of attention the place alone: a CPU's kernel is another one."""
    return [
        (place, "attention")
        if each.is_attention
        else (place, each.name, each.launches, each.flops, each.name in BY_PRODUCTS or each.bytes)
        for place, each in counted.kernels
    ]


def attend_on_cpu(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, *_: Any, **kwargs: Any
) -> tuple[Tensor, ...]:
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return *kernel(q, k, v, attn_mask=attn_mask, scale=kwargs.get("scale")), None, None


CPU_KERNELS = {
    "scaled_dot_product_attention": lambda *args, **kwargs: attend_on_cpu(*args, **kwargs)[0],
    "_scaled_dot_product_efficient_attention": attend_on_cpu,
    "_scaled_dot_product_flash_attention": attend_on_cpu,
}


@shapes
@pytest.mark.parametrize("setting", [PLAIN, *SETTINGS], ids=lambda setting: setting.name)
def test_sizes_alone_give_the_counts_of_real_numbers(
    shape: Shape, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Blocks of full width compute for half a minute on a processor.
    monkeypatch.setattr(transformer_blocks, "FLUX", FLUX_SHAPED.narrow)
    monkeypatch.setattr(transformer_blocks, "WAN", WAN_SHAPED.narrow)
    real = count_on(StandInGpu(torch.device("cpu"), CPU_KERNELS), shape.block, setting.patch)
    assert read(count_block(shape.block, setting.patch)) == read(real)


@shapes
@settings
def test_ours_is_all_that_comes_to_a_transformers_block(shape: Shape, setting: Setting) -> None:
    plain, cost = find_cost(shape, PLAIN), find_cost(shape, setting)
    assert plain.parts["ours"].operations == 0
    assert cost.parts["ours"].operations > 0
    if shape.is_unet or setting.name not in ("Token Downsample ×2", "Token Merge 0.2"):
        # Tiles of so small a picture fill a small part of the rows that a kernel computes.
        assert cost.parts["attention"].flops < plain.parts["attention"].flops
    if not shape.is_unet:  # there, the projections get fewer tokens
        assert cost.parts["rest"] == plain.parts["rest"]


def test_a_kernel_takes_as_long_as_memory_or_arithmetic_and_its_launch() -> None:
    gpu = Gpu("slow", bandwidth=100.0, flops=1000.0)
    kernels = [Kernel("copy_", 1, 200, 0), Kernel("mm", 1, 200, 5000)]
    assert gpu.estimate_busy_seconds(kernels) == 2 + 5
    cost = find_cost(QUICK_SHAPES[0], SETTINGS[0])
    launches = sum(part.launches for part in cost.parts.values())
    busy = sum(part.busy_seconds["H200"] for part in cost.parts.values())
    assert cost.sum_busy("H200") == pytest.approx(busy)
    assert cost.sum_seconds("H200") == pytest.approx(busy + launches * LAUNCH_SECONDS)


def test_a_setting_pays_from_where_it_always_does() -> None:
    tokens = [10, 20, 30, 40]
    assert find_first(tokens, [True, False, True, True]) == 30
    assert find_first(tokens, [True] * 4) == 10
    assert find_first(tokens, [True, True, True, False]) is None


def test_the_command_writes_numbers_and_tables(tmp_path: Path) -> None:
    assert cli.main(["cost", "--quick", "--out", str(tmp_path)]) == 0
    written = json.loads((tmp_path / "cost.json").read_text(encoding="utf-8"))
    assert len(written["costs"]) == sum(len(shape.settings) for shape in QUICK_SHAPES)
    assert len(written["break_evens"]) == len(SETTINGS) * len(written["gpus"])
    table = (tmp_path / "cost.md").read_text(encoding="utf-8")
    assert all(f"**{shape.name}**" in table for shape in QUICK_SHAPES)


def test_a_table_takes_the_place_of_the_one_with_its_columns() -> None:
    old, new = "| a | b |\n| --- | --- |\n| 1 | 2 |\n", "| a | b |\n| --- | --- |\n"
    other = "| a | c |\n| --- | --- |\n"
    assert replace_table(f"x\n\n{old}\n{other}", new) == f"x\n\n{new}\n{other}"
    with pytest.raises(ValueError, match="0 tables"):
        replace_table(other, new)


def test_the_document_has_the_tables_that_were_written() -> None:
    tables = (cli.RESULTS / "cost" / "cost.md").read_text(encoding="utf-8")
    document = (Path(__file__).parents[2] / "docs" / "speed.md").read_text(encoding="utf-8")
    assert all(table in document for table in tables.strip().split("\n\n"))
