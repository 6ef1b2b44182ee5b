"""The part of the benchmark with comfy-kitchen's kernels, on narrow models and without a GPU."""

from __future__ import annotations

from pathlib import Path

import comfy_kitchen
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.speed import cli, kitchen
from benchmarks.speed.inputs import LARGE, QUICK_CLIPS
from benchmarks.speed.results import Results

RIVALS = ("Sol-Attn, core's defaults", "Sol-Attn, top-k, as many pairs as ×2", kitchen.INT8)


@pytest.fixture
def large() -> list[str]:
    return [clip.name for clip in QUICK_CLIPS if clip.name in LARGE]


def test_it_runs_through_where_there_are_no_kernels(tmp_path: Path, large: list[str]) -> None:
    threads = torch.get_num_threads()
    assert cli.main(["rivals", "--quick", "--out", str(tmp_path)]) == 0
    torch.set_num_threads(threads)
    found = Results.read(tmp_path).cases
    assert len(found) == len(large) and {case.part for case in found} == {"rivals"}
    for case in found:
        failed = {one.name: one.failed for one in case.measured if one.failed}
        assert failed == dict.fromkeys(RIVALS, kitchen.MISSING)
        ours = [one for one in case.measured if one.kind == "ours"]
        assert len(ours) == 3 and all(one.seconds for one in ours)
    text = (tmp_path / "tables.txt").read_text(encoding="utf-8")
    said = " ".join(text.split())  # lines are broken where their column ends
    assert said.count(kitchen.MISSING) == len(RIVALS) * len(large) and "failed" not in said


def test_kernels_get_tensors_as_they_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins with the arguments of comfy-kitchen 0.2.40, which compute exact attention."""
    given: list[dict[str, object]] = []

    def sol_attn(q: Tensor, k: Tensor, v: Tensor, **options: object) -> Tensor:
        given.append(options)
        return F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v))).transpose(
            1, 2
        )

    for name in ("sol_attn_is_available", "int8_attention_is_available"):
        monkeypatch.setattr(comfy_kitchen, name, lambda device: True, raising=False)
    monkeypatch.setattr(comfy_kitchen, "sol_attn", sol_attn, raising=False)
    monkeypatch.setattr(
        comfy_kitchen, "int8_attention", F.scaled_dot_product_attention, raising=False
    )
    q, k, v = (torch.randn(1, 2, 70, 32, dtype=torch.bfloat16) for _ in range(3))
    exact = F.scaled_dot_product_attention(q, k, v)
    for clip in QUICK_CLIPS:
        kernels = kitchen.list_kernels(clip)
        assert tuple(kernels) == RIVALS
        for attend in kernels.values():
            assert torch.equal(attend(q, k, v), exact)
        by_default, as_ours = given[-2:]
        assert by_default["tau"] == 1.3 and by_default["token_aug"] == 256
        assert by_default["sink_blocks"] == [0, 1 if clip.transformer.joint else 0]
        assert as_ours["topk_ratio"] > 0
    with pytest.raises(RuntimeError, match="left out"):
        kitchen.int8_attention(q.float(), k.float(), v.float())
