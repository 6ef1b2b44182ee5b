"""The trained model as the demo's nodes and graphs have it."""

from __future__ import annotations

import torch

from devtools import graph
from devtools.demo_model import TrainedModel

PROMPT = {
    "1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "a"}},
    "2": {"class_type": "CLIPTextEncode", "inputs": {"text": "a coast", "clip": ["1", 1]}},
    "3": {"class_type": "CLIPTextEncode", "inputs": {"text": "blurry", "clip": ["1", 1]}},
    "4": {"class_type": "KSampler", "inputs": {"positive": ["3", 0], "negative": ["2", 0]}},
}


def test_the_prompt_goes_where_the_sampler_reads_it() -> None:
    changed = graph.with_trained_model(PROMPT, "a red circle")
    assert changed["1"] == {"class_type": "TokenMergeTrainedModel", "inputs": {"kind": "unet"}}
    assert changed["3"]["inputs"]["text"] == "a red circle"
    assert changed["2"]["inputs"]["text"] == ""
    assert PROMPT["2"]["inputs"]["text"] == "a coast"


def test_the_node_gives_a_model_a_text_encoder_and_a_decoder_that_fit() -> None:
    model, clip, vae = TrainedModel.execute("unet").args
    context, _ = clip.encode_from_tokens(clip.tokenize("a red circle"), return_pooled=True)
    unet = model.model.diffusion_model
    with torch.no_grad():
        latent = unet(torch.zeros(1, 32, 8, 8), torch.tensor([500.0]), context=context.float())
    pixels = vae.decode(model.model.process_latent_out(latent))
    assert pixels.shape == (1, 64, 64, 3)
    assert 0 <= float(pixels.min()) <= float(pixels.max()) <= 1
    assert vae.encode(pixels).shape == latent.shape
    assert (vae.decode(vae.encode(pixels)) - pixels).abs().mean() < 0.02
