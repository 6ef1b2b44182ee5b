"""Both nodes on a small Flux and a small Wan, loaded from files by the real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import comfy.supported_models
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from benchmarks.random_models import build_model
from devtools.client import Client, Prompt
from devtools.server import Server

WIDTH = 64  # of the demo model's text encoder

FLUX = {
    "in_channels": 16,
    "out_channels": 16,
    "vec_in_dim": WIDTH,
    "context_in_dim": WIDTH,
    "hidden_size": 128,
    "mlp_ratio": 4.0,
    "num_heads": 1,
    "depth": 2,
    "depth_single_blocks": 2,
    "axes_dim": [16, 56, 56],
    "theta": 10000,
    "patch_size": 2,
    "txt_ids_dims": [],
    "qkv_bias": True,
    "guidance_embed": False,
}
WAN = {
    "model_type": "t2v",
    "dim": 128,
    "ffn_dim": 128,
    "num_heads": 1,
    "num_layers": 3,
    "text_dim": WIDTH,
    "in_dim": 16,
    "out_dim": 16,
}
NODES: dict[str, dict[str, Any]] = {
    "TokenMerge": {"ratio": 0.5, "exact_early_steps": True},
    "TokenDownsample": {"factor": 2.0, "local_window": "off", "exact_early_steps": True},
}
LATENTS: dict[str, dict[str, Any]] = {
    "flux": {
        "class_type": "EmptySD3LatentImage",
        "inputs": {"width": 256, "height": 192, "batch_size": 1},
    },
    "wan": {
        "class_type": "EmptyHunyuanLatentVideo",
        "inputs": {"width": 160, "height": 128, "length": 9, "batch_size": 1},
    },
}
# Tokens of the picture (16 x 12) or video (3 x 10 x 8), and of the prompt in the same sequence.
TOKENS = {"flux": (192, 77), "wan": (240, 0)}
# Keys that a query reads where queries share those out of their box.
IN_WINDOWS = {"flux": 145, "wan": 72}


def make_weights(configuration: type, settings: dict[str, Any]) -> dict[str, Tensor]:
    return build_model(configuration, settings).model.diffusion_model.state_dict()


@pytest.fixture(scope="module")
def checkpoints(server: Server) -> None:
    """The two models as files in the server's folder."""
    folder = server.base / "models" / "diffusion_models"
    folder.mkdir(parents=True, exist_ok=True)
    flux = make_weights(comfy.supported_models.Flux, FLUX)
    save_file(flux, folder / "flux.safetensors")
    # The width of the prompt is not read off the weights.
    metadata = {"config": json.dumps({"transformer": {"text_dim": WIDTH}})}
    wan = make_weights(comfy.supported_models.WAN21_T2V, WAN)
    save_file(wan, folder / "wan.safetensors", metadata)


@pytest.fixture
def generate(server: Server, client: Client, checkpoints: None) -> Callable[..., Tensor]:
    def run(family: str, node: str | None) -> Tensor:
        client.run(build_graph(family, node))
        return newest_latent(server.base)

    return run


def build_graph(family: str, node: str | None) -> Prompt:
    prompt: Prompt = {
        "1": {
            "class_type": "UNETLoader",
            "inputs": {"unet_name": f"{family}.safetensors", "weight_dtype": "default"},
        },
        "2": {"class_type": "TokenMergeDemoModel", "inputs": {"seed": 1}},
        "3": {"class_type": "CLIPTextEncode", "inputs": {"text": "a cat", "clip": ["2", 1]}},
        "4": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["2", 1]}},
        "5": LATENTS[family],
        "6": {
            "class_type": "KSampler",
            "inputs": {
                "model": ["1", 0],
                "positive": ["3", 0],
                "negative": ["4", 0],
                "latent_image": ["5", 0],
                "seed": 1,
                "steps": 2,
                "cfg": 2.0,
                "sampler_name": "euler",
                "scheduler": "simple",
                "denoise": 1.0,
            },
        },
        "7": {"class_type": "SaveLatent", "inputs": {"samples": ["6", 0], "filename_prefix": "x"}},
    }
    if node:
        prompt["8"] = {"class_type": node, "inputs": {**NODES[node], "model": ["1", 0]}}
        prompt["6"]["inputs"]["model"] = ["8", 0]
    return prompt


def newest_latent(base: Path) -> Tensor:
    files = (base / "output").rglob("*.latent")
    return load_file(max(files, key=lambda path: path.stat().st_mtime_ns))["latent_tensor"]


@pytest.mark.thorough
@pytest.mark.parametrize("family", TOKENS)
def test_both_nodes_reduce_and_change_the_result_a_little(family, generate, server):
    picture, prompt = TOKENS[family]
    unpatched = generate(family, None)
    assert unpatched.isfinite().all()
    assert torch.equal(generate(family, None), unpatched)
    merged, kept = picture // 2 + prompt, picture // 4 + prompt
    read = IN_WINDOWS[family]
    for node, did in (
        ("TokenMerge", f", attention computes {merged:,} queries and reads {read:,} keys"),
        ("TokenDownsample", f", attention reads {kept:,} keys"),
    ):
        start = len(server.log.read_text())
        reduced = generate(family, node)
        assert reduced.isfinite().all()
        assert 0 < (reduced - unpatched).norm() / unpatched.norm() < 0.5
        said = f"{picture + prompt:,} tokens{did}"
        assert said in server.log.read_text()[start:]
