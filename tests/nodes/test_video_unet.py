"""SVD: its spatial layers are reduced, its temporal ones are not."""

import logging

import pytest
import torch


def apply_model(model, frames: int, height: int = 8, width: int = 12) -> torch.Tensor:
    """One call of the real model, as a sampler makes it."""
    generator = torch.Generator().manual_seed(2)

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    options = {**model.model_options["transformer_options"], "wrappers": model.wrappers}
    with torch.no_grad():
        model.patch_model()
        try:
            return model.model.apply_model(
                noise(frames, 4, height, width),
                torch.full((frames,), 5.0),
                c_concat=noise(frames, 4, height, width),
                c_crossattn=noise(frames, 1, 32),
                y=noise(frames, 768),
                num_video_frames=frames,
                transformer_options=options,
            )
        finally:
            model.unpatch_model()


@pytest.mark.parametrize("frames", [1, 5])
def test_spatial_layers_are_merged_and_temporal_ones_are_not(frames, unet, tome, attention_log):
    apply_model(attention_log.watch(tome(unet("SVD"))), frames)
    self_attention = {(q, k) for q, k in attention_log.lengths if k > 1}
    temporal = {(frames, frames)} if frames > 1 else set()
    assert self_attention == {(48, 48), (24, 24), (6, 6)} | temporal


def test_spatial_layers_are_downsampled(unet, token_downsample, attention_log):
    apply_model(attention_log.watch(token_downsample(unet("SVD"), method="stratified")), frames=5)
    self_attention = {(q, k) for q, k in attention_log.lengths if k > 1}
    assert self_attention == {(96, 24), (24, 24), (6, 6), (5, 5)}


def test_as_many_frames_as_tokens_are_left_alone_with_a_reason(
    unet, token_merge, caplog, attention_log
):
    unpatched = apply_model(unet("SVD"), frames=24, height=4, width=6)
    with caplog.at_level(logging.INFO, logger="token_merge"):
        merged = apply_model(token_merge(unet("SVD")), frames=24, height=4, width=6)
    assert torch.equal(merged, unpatched)
    assert "24 tokens cannot be told from 24 frames" in caplog.text


def test_the_mlp_of_temporal_blocks_is_left_alone(unet, token_merge):
    model = token_merge(unet("SVD"), merge_mlp=True)
    assert model.object_patches
    assert not any("time_stack" in name for name in model.object_patches)
    assert apply_model(model, frames=5).isfinite().all()
