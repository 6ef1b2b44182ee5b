"""The part of the benchmark with whole samplings of whole models, on narrow ones."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.speed import cli, whole_models
from benchmarks.speed.results import Results


def test_every_model_is_sampled_unpatched_and_with_both_nodes(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    assert cli.main(["models", "--quick", "--out", str(tmp_path)]) == 0
    torch.set_num_threads(threads)
    found = Results.read(tmp_path).cases
    models = {case.model.removesuffix(" (narrow)").split(",")[0] for case in found}
    assert models == {"SD 1.5", "SDXL", "Flux", "Wan 1.3B", "Wan 14B"}
    for case in found:
        measured = {one.name: one for one in case.measured}
        for name in ("unpatched", *whole_models.NODES):
            assert len(measured[name].seconds) == 1 and measured[name].peak_bytes
        assert case.note.startswith("all of ")
    text = " ".join((tmp_path / "tables.txt").read_text(encoding="utf-8").split())
    assert text.count("Whole models: ") == len(found) and "failed" not in text
