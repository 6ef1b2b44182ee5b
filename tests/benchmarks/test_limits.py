"""The limit shortens attention and nothing else; the clock counts calls, not sampling."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

from benchmarks import peers, settings
from benchmarks.speed import attention_stage, limits
from benchmarks.speed.attention_watch import OVERRIDE_KEY, AttentionWatch
from benchmarks.speed.diffusion_transformers import Clip
from benchmarks.speed.environment import Environment
from benchmarks.speed.inputs import QUICK_CLIPS
from benchmarks.speed.sampling import CallError, Request, run, sample
from benchmarks.speed.unets import UNETS

ENVIRONMENT = Environment(torch.device("cpu"), narrow=True)


@pytest.mark.parametrize("setting", settings.ALL, ids=lambda setting: setting.name)
def test_the_limit_keeps_the_shape_of_the_output(setting: settings.Setting) -> None:
    model = UNETS["sd15"].build(ENVIRONMENT)
    limited = limits.with_tokens_cut_off(model, setting, finest=1)
    request = Request(104, 136, images=2, context=32)  # an odd grid, 13 x 17
    plain, cut = sample(model, request), sample(limited, request)
    assert plain.shape == cut.shape
    assert not torch.equal(plain, cut)


@pytest.mark.parametrize("clip", QUICK_CLIPS, ids=lambda clip: clip.name)
@pytest.mark.parametrize(
    "setting", [settings.MERGE_ALL, settings.DOWNSAMPLE_2], ids=lambda setting: setting.name
)
def test_the_limit_keeps_the_shape_of_a_transformers_output(
    clip: Clip, setting: settings.Setting
) -> None:
    model = clip.transformer.build(ENVIRONMENT)
    limited = limits.with_picture_cut_off(model, setting, clip.stream)
    request = clip.request(clip.transformer.config_in(ENVIRONMENT))
    plain, cut = sample(model, request), sample(limited, request)
    assert plain.shape == cut.shape == request.latent_size
    assert not torch.equal(plain, cut)


def test_time_in_the_override_is_told_from_time_in_attention() -> None:
    clip = QUICK_CLIPS[0]
    model = clip.transformer.build(ENVIRONMENT)
    request = clip.request(clip.transformer.config_in(ENVIRONMENT))

    def attend(attention: Any, *args: Any, **kwargs: Any) -> Any:
        time.sleep(0.05)
        return attention(*args, **kwargs)

    slow = model.clone()
    slow.model_options["transformer_options"][OVERRIDE_KEY] = attend
    watch = AttentionWatch(model.load_device, request.prompt_tokens)
    seconds = run(watch.attach(slow), request, hooks=False).seconds
    assert 0.1 <= watch.seconds_in_override() < seconds  # two blocks
    unchanged = AttentionWatch(model.load_device, request.prompt_tokens)
    torch.testing.assert_close(sample(unchanged.attach(slow), request), sample(model, request))


def test_peers_and_limits_reach_sdxls_finest_attention() -> None:
    model = UNETS["sdxl"].build(ENVIRONMENT)
    request = Request(128, 128, context=32)
    plain = sample(model, request)
    for patched in (
        limits.with_tokens_cut_off(model, settings.MERGE_ALL, finest=2),
        peers.tomesd(model, settings.MERGE_ALL, finest=2),
        peers.todo(model, settings.DOWNSAMPLE_2, finest=2),
    ):
        assert not torch.equal(plain, sample(patched, request))
    assert torch.equal(plain, sample(peers.comfyui_tome(model, 0.5), request))


def test_other_attention_functions_compute_the_same() -> None:
    model = UNETS["sd15"].build(ENVIRONMENT)
    request = Request(64, 64, context=32)
    unfused = sample(peers.with_unfused_attention(model), request)
    torch.testing.assert_close(unfused, sample(model, request), atol=1e-4, rtol=1e-4)


def test_a_call_of_another_batch_than_stated_is_an_error() -> None:
    """Where memory is short ComfyUI splits prompt and negative prompt into two calls."""
    model = UNETS["sd15"].build(ENVIRONMENT)
    request = Request(64, 64, guided=True, context=32)
    assert run(model, request).seconds > 0
    model.model.memory_required = lambda *_, **__: float("inf")
    with pytest.raises(CallError, match=r"\[1, 1\] rows, expected 2"):
        run(model, request)


def test_the_stage_runs_one_self_attention_and_our_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import ours

    model, context = attention_stage.build(32, 4, ENVIRONMENT)
    calls: list[tuple[int, int]] = []

    def note(attention: Any, q: Any, k: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append((q.shape[1], k.shape[1]))
        return attention(q, k, *args, **kwargs)

    merged = ours.token_merge(model, settings.MERGE_ALL)
    merged.model_options["transformer_options"]["optimized_attention_override"] = note
    assert run(merged, Request(128, 192, context=context)).hooks
    assert calls == [(192, 192)]  # 16 x 24 tokens, half of them
