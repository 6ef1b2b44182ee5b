"""ComfyUI chooses the attention function; the nodes work under each."""

import comfy.ldm.modules.attention as attention
import pytest


@pytest.mark.parametrize(
    "backend", ["attention_pytorch", "attention_split", "attention_sub_quad", "attention_basic"]
)
def test_both_nodes_work_under_every_attention(
    backend, unet, token_merge, token_downsample, denoise, monkeypatch
):
    default = [denoise(node(unet("SD15")), steps=1) for node in (token_merge, token_downsample)]
    monkeypatch.setattr(attention, "optimized_attention", getattr(attention, backend))
    other = [denoise(node(unet("SD15")), steps=1) for node in (token_merge, token_downsample)]
    for one, two in zip(default, other, strict=True):
        assert (one - two).norm() / one.norm() < 1e-3
