"""The moving scenes, and the video model that was trained on them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from comfy.model_patcher import ModelPatcher
from support.attention_record import AttentionRecord

from benchmarks.quality import sampling
from benchmarks.quality.places import CLIP_FRAMES
from benchmarks.quality.regimes import Regime
from benchmarks.trained import clips, moving_scenes, places, text, weights
from benchmarks.trained.motion import DIRECTIONS, FRAMES
from benchmarks.trained.moving_scenes import MovingScene

LATENT = (12, 3, 8, 8)


def find_scene(*words: str, without: str = " and ") -> MovingScene:
    """The first drawn scene whose caption has all these words and lacks one."""
    rng = np.random.default_rng(5)
    for _ in range(2000):
        scene = moving_scenes.draw(rng, 32)
        if all(word in scene.caption for word in words) and without not in scene.caption:
            return scene
    raise AssertionError(f"no scene with {words}")


def in_order(numbers: list[float]) -> bool:
    return all(later > earlier for earlier, later in pairwise(numbers))


def sample(model: ModelPatcher, caption: str, steps: int) -> torch.Tensor:
    prompts = text.encode(text.build_encoder(), caption)[None]
    batch = sampling.Batch(prompts, prompts, (0,), LATENT)
    return sampling.sample(model, batch, Regime("euler", "normal", steps))


@pytest.fixture(scope="module")
def model() -> ModelPatcher:
    return weights.load(places.WEIGHTS["wan"])


def test_drawn_clips_are_cropped_and_shrunk_alike_in_all_frames() -> None:
    drawn = clips.draw_held_out(2, " sliding ")
    assert all(" sliding " in scene.caption for scene in drawn)
    cropped, again = (clips.crop(drawn, 16, torch.Generator().manual_seed(0)) for _ in range(2))
    assert torch.equal(cropped, again)
    assert cropped.shape == (2, 3, FRAMES, 16, 16)
    assert cropped.min() >= -1 and cropped.max() <= 1
    assert cropped.diff(dim=2).abs().mean() > 0.01


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_shape_moves_where_its_caption_says_over_a_ground_that_stays(direction: str) -> None:
    scene = find_scene(f"moving {direction} on a", "background")
    frames = scene.pixels.astype(int)
    ground = np.median(frames, axis=0)
    covered = np.abs(frames - ground).max(-1) > 40  # (F, H, W)
    x, y = DIRECTIONS[direction]
    rows, columns = np.mgrid[0:32, 0:32]
    along = [float((x * columns + y * rows)[inside].mean()) for inside in covered]
    assert in_order(along[:: FRAMES // 2])
    assert all((one != other).any() for one, other in pairwise(frames))
    never = ~covered.any(0)
    assert never.mean() > 0.2
    assert np.ptp(frames[:, never], axis=0).max() <= 40


@pytest.mark.parametrize("words", ["sliding left", "zooming in"])
def test_a_photograph_moves_as_a_whole(words: str) -> None:
    frames = find_scene("a photo of", words).pixels.astype(int)
    changed = np.abs(np.diff(frames, axis=0)).max(-1) > 0  # (F - 1, H, W)
    assert (changed.mean((1, 2)) > 0.5).all()


def test_a_photograph_that_does_not_move_is_the_same_in_every_frame() -> None:
    scene = find_scene("a photo of", without="ing ")
    assert (scene.pixels == scene.pixels[:1]).all()


@pytest.mark.parametrize(("words", "mirrors"), [("moving left", False), ("moving up on", True)])
def test_only_scenes_that_still_fit_their_captions_are_mirrored(words: str, mirrors: bool) -> None:
    assert find_scene(words, "background").mirrors == mirrors


def test_the_weights_stay_small() -> None:
    assert places.WEIGHTS["wan"].stat().st_size <= 12 * 2**20


def test_a_clip_is_sampled_by_comfyui(model: ModelPatcher) -> None:
    latent = sample(model, "a red circle moving left on a blue background", steps=2)
    made = sampling.pictures(model, latent)
    assert made.shape == (1, 3, 3, 16, 16)
    assert torch.isfinite(made).all()
    assert made.std() > 0.05


def test_token_downsample_reduces_every_block(model: ModelPatcher, token_downsample) -> None:
    record = AttentionRecord()
    windowless = {"method": "stratified", "local_window": "off"}
    patched = record.watch(token_downsample(model, factor=2.0, **windowless))
    sample(patched, "a photo of cat zooming in", steps=1)
    tokens, words = 3 * 8 * 8, 77
    blocks = len(model.model.diffusion_model.blocks)
    reached = [call.lengths for call in record.reached]
    assert reached == [(tokens, tokens // 4), (tokens, words)] * blocks


def test_the_folder_of_results_names_the_frames_of_a_clip() -> None:
    assert CLIP_FRAMES == FRAMES
