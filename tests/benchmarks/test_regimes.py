"""How pictures are sampled, and that every variant is given the noise of the original."""

from __future__ import annotations

import pytest
import torch

from benchmarks.quality import regimes, sampling
from benchmarks.quality.effort import EffortWatch
from benchmarks.quality.regimes import STANDARD, Regime
from benchmarks.trained import places, text, weights

SHAPE = sampling.square(8)
ANCESTRAL = Regime("euler_ancestral", "simple", 3)


def prompts(*captions: str) -> torch.Tensor:
    """(B, 77, C)."""
    clip = text.build_encoder()
    return torch.stack([text.encode(clip, caption) for caption in captions])


def make_batch(seeds: tuple[int, ...]) -> sampling.Batch:
    return sampling.Batch(prompts(*["a cat on grass"] * len(seeds)), prompts(""), seeds, SHAPE)


def test_the_name_of_a_regime_is_what_the_command_line_reads() -> None:
    for regime in {each for standard in STANDARD.values() for each in standard}:
        assert regimes.parse(regime.name) == regime
    with pytest.raises(ValueError, match="sampler is 'eulr'"):
        regimes.parse("eulr-normal-20-cfg1")


def test_every_picture_has_noise_of_its_own_in_the_steps_whatever_is_beside_it() -> None:
    levels = torch.tensor([1.0, 0.5])
    several, alone = make_batch((0, 1, 2)), make_batch((1,))
    both, one = several.step_noise(), alone.step_noise()
    drawn = [both(*levels) for _ in range(2)]
    torch.testing.assert_close(drawn[0][1:2], one(*levels))
    torch.testing.assert_close(drawn[1][1:2], one(*levels))
    every = torch.cat([several.noise(), *drawn]).flatten(1)
    assert len(every.unique(dim=0)) == 9


@pytest.mark.parametrize("kind", ["unet", "flux"])
def test_an_ancestral_sampler_gives_the_same_picture_again(kind: str) -> None:
    model = weights.load(places.WEIGHTS[kind])
    both = sampling.sample(model, make_batch((3, 4)), ANCESTRAL)
    alone = sampling.sample(model, make_batch((4,)), ANCESTRAL)
    assert both.isfinite().all()
    torch.testing.assert_close(alone[0], both[1], atol=1e-4, rtol=1e-4)
    quiet = sampling.sample(model, make_batch((4,)), Regime("euler", "simple", 3))
    assert not torch.allclose(quiet, alone, atol=1e-2)


@pytest.mark.parametrize("sampler", regimes.SAMPLERS)
def test_guidance_computes_a_second_row_for_the_empty_caption(sampler: str) -> None:
    model = weights.load(places.WEIGHTS["flux"])
    batch = make_batch((0,))
    latents = []
    for cfg, rows in ((1.0, 1), (5.0, 2)):
        watch = EffortWatch()
        regime = Regime(sampler, "simple", 3, cfg)
        latents.append(sampling.sample(watch.attach(model), batch, regime))
        assert watch.effort.rows == rows * regime.steps
    assert not torch.allclose(*latents, atol=1e-2)


def test_a_clip_has_a_latent_of_one_more_dimension() -> None:
    batch = sampling.Batch(prompts("a cat"), prompts(""), (0,), (32, 3, 8, 8))
    assert batch.noise().shape == (1, 32, 3, 8, 8)
    assert batch.step_noise()(torch.ones(()), torch.ones(())).shape == (1, 32, 3, 8, 8)


def test_fewer_steps_have_a_schedule_of_their_own() -> None:
    model = weights.load()
    whole = STANDARD["unet"][0]
    fewer = sampling.noise_levels(model, whole.with_steps(4))
    assert len(fewer) == 5 and fewer[-1] == 0
    assert whole.with_steps(None) is whole
    assert not torch.isin(fewer[1:-1], sampling.noise_levels(model, whole)).all()
