"""The limit shortens attention and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks import peers, settings
from benchmarks.speed import limits
from benchmarks.speed.diffusion_transformers import Clip
from benchmarks.speed.environment import Environment
from benchmarks.speed.inputs import QUICK_CLIPS
from benchmarks.speed.sampling import CallError, Request, run, sample
from benchmarks.speed.unets import UNETS

SETTINGS = (settings.MERGE, settings.MERGE_ALL, settings.MERGE_QUERIES, settings.DOWNSAMPLE)
ENVIRONMENT = Environment(torch.device("cpu"), narrow=True)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_limit_keeps_the_shape_of_the_output(setting: settings.Setting) -> None:
    model = UNETS["sd15"].build(ENVIRONMENT)
    limited = limits.with_tokens_cut_off(model, setting, finest=1)
    request = Request(104, 136, guided=True, context=32)  # an odd grid, 13 x 17
    unpatched, cut = sample(model, request), sample(limited, request)
    assert unpatched.shape == cut.shape
    assert not torch.equal(unpatched, cut)


@pytest.mark.parametrize("clip", QUICK_CLIPS, ids=lambda clip: clip.name)
@pytest.mark.parametrize(
    "setting", [settings.MERGE_ALL, settings.DOWNSAMPLE], ids=lambda setting: setting.name
)
def test_the_limit_keeps_the_shape_of_a_transformers_output(
    clip: Clip, setting: settings.Setting
) -> None:
    model = clip.transformer.build(ENVIRONMENT)
    limited = limits.with_picture_cut_off(model, setting, clip.stream)
    request = clip.request(clip.transformer.config_in(ENVIRONMENT))
    unpatched, cut = sample(model, request), sample(limited, request)
    assert unpatched.shape == cut.shape == request.latent_size
    assert not torch.equal(unpatched, cut)


def test_peers_and_limits_reach_sdxls_finest_attention() -> None:
    model = UNETS["sdxl"].build(ENVIRONMENT)
    request = Request(128, 128, context=32)
    unpatched = sample(model, request)
    for patched in (
        limits.with_tokens_cut_off(model, settings.MERGE_ALL, finest=2),
        peers.tomesd(model, settings.MERGE_ALL, finest=2),
        peers.todo(model, settings.DOWNSAMPLE, finest=2),
    ):
        assert not torch.equal(unpatched, sample(patched, request))
    assert torch.equal(unpatched, sample(peers.comfyui_tome(model, 0.5), request))


def test_tomesd_matches_what_a_block_is_given_before_its_norm(monkeypatch) -> None:
    given: list[Tensor] = []
    match = peers.bipartite_soft_matching_random2d

    def note(metric: Tensor, *args: Any, **kwargs: Any) -> Any:
        given.append(metric)
        return match(metric, *args, **kwargs)

    monkeypatch.setattr(peers, "bipartite_soft_matching_random2d", note)
    model = UNETS["sd15"].build(ENVIRONMENT)
    sample(peers.tomesd(model, settings.MERGE_ALL, finest=1), Request(64, 64, context=32))
    assert len(given) == 3, "once in each of the finest blocks"
    assert all(float(each.mean(-1).abs().amax()) > 0.01 for each in given), "a norm takes it away"


def test_a_call_of_another_batch_than_stated_is_an_error() -> None:
    """Where memory is short ComfyUI splits prompt and negative prompt into two calls."""
    model = UNETS["sd15"].build(ENVIRONMENT)
    request = Request(64, 64, guided=True, context=32)
    assert run(model, request) > 0
    model.model.memory_required = lambda *_, **__: float("inf")
    with pytest.raises(CallError, match=r"\[1, 1\] rows, expected 2"):
        run(model, request)
