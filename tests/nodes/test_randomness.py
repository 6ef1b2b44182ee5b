"""Same graph, same seed, same picture."""

from functools import partial

import pytest
import torch


@pytest.fixture(params=["merge", "stratified", "interleaved", "window"])
def node(request, token_merge, token_downsample):
    """A node whose choice of tokens is drawn, but for ``seed`` with its defaults."""
    if request.param == "merge":
        return token_merge
    if request.param == "window":
        return partial(token_downsample, local_window="8")
    return lambda model, **inputs: token_downsample(model, method=request.param, **inputs)


def test_the_same_seed_gives_the_same_picture(unet, node, denoise):
    first, second = (denoise(node(unet("SD15"), seed=3)) for _ in range(2))
    assert torch.equal(first, second)


def test_another_seed_gives_other_destinations(unet, node, denoise):
    one, other = (denoise(node(unet("SD15"), seed=seed)) for seed in (0, 1))
    assert not torch.equal(one, other)


def test_the_seed_reaches_the_query_groups(unet, token_downsample, denoise):
    def find_first_queries(seed):
        found = []

        def note(attention, q, *args, **kwargs):
            found.append(q)
            return attention(q, *args, **kwargs)

        model = unet("SD15").clone()
        model.model_options["transformer_options"]["optimized_attention_override"] = note
        denoise(token_downsample(model, method="interleaved", seed=seed), steps=1)
        return found[0]

    first, again, other = map(find_first_queries, (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_without_random_destinations_the_seed_changes_nothing(unet, tome, denoise):
    one, other = (
        denoise(tome(unet("SD15"), seed=seed, random_destinations=False)) for seed in (0, 1)
    )
    assert torch.equal(one, other)


def test_the_global_random_state_neither_matters_nor_moves(unet, node, denoise):
    model = node(unet("SD15"))
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = denoise(model)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert torch.equal(denoise(model), first)


def test_splitting_the_batch_of_prompts_changes_nothing(unet, node, denoise, monkeypatch):
    model = node(unet("SD15"))
    together = denoise(model, batch=2)
    monkeypatch.setattr(type(model), "get_free_memory", lambda *_: 1)
    calls = []
    model.set_model_unet_function_wrapper(
        lambda apply, call: (
            calls.append(call["input"].shape[0])
            or apply(call["input"], call["timestep"], **call["c"])
        )
    )
    apart = denoise(model, batch=2)
    assert calls == [2, 2] * 2, "prompt and negative prompt did not run apart"
    torch.testing.assert_close(apart, together, rtol=1e-4, atol=1e-4 * together.abs().max().item())
