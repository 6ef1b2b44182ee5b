"""The command ``train``: fetches the data, trains the models, packs a folder that does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .. import loading
from . import emoji
from .options import parse

if TYPE_CHECKING:
    from .recipes import Recipe

RESERVE = 40.0
"""Seconds for what is not training: imports, decoding the emoji, samples."""


def main(arguments: list[str], cache: Path | None = None) -> int:
    """0 where all went well, 1 otherwise.

    cache: where the emoji are kept. Without it ``--data`` has to name the selection.
    """
    options = parse(arguments)
    try:
        if options.data is None:
            if cache is None:
                raise RuntimeError("--data is missing, expected the selection of emoji")
            options.data = emoji.load(cache)
        if options.part == "run":
            loading.load(options.device)
            return _train(options)
        if options.part == "pack":
            _pack(options)
        else:
            print(options.data)
    except RuntimeError as error:
        print(f"Training failed. {error}")
        return 1
    return 0


def _train(options: argparse.Namespace) -> int:
    """1 where a model failed; the others are trained all the same."""
    import torch

    from .recipes import RECIPES

    recipes = {
        name: RECIPES[name].shrink()
        if options.quick
        else RECIPES[name].fit(options.tokens, options.batch)
        for name in options.models
    }
    shares = sum(recipe.share for recipe in recipes.values())
    torch.set_float32_matmul_precision("high")
    code = 0
    for name, recipe in recipes.items():
        seconds = (60 * options.minutes - RESERVE) * recipe.share / shares
        try:
            _train_one(name, recipe, seconds, options)
        except (RuntimeError, FileNotFoundError) as error:
            print(f"{name} failed. {error}", flush=True)
            code = 1
    return code


def _train_one(name: str, recipe: Recipe, seconds: float, options: argparse.Namespace) -> None:
    import torch

    from ..trained import weights
    from .pool import Source
    from .samples import draw_sheet, sample
    from .trainer import Limit, Training

    device = torch.device(options.device)
    limit = Limit(seconds, 4 if options.quick else options.steps or float("inf"))
    subjects = 4 if options.quick else options.subjects or recipe.subjects
    source = Source.load(options.data, recipe.frames, device, subjects)
    place = options.out / f"{name}.safetensors"
    training = Training(recipe, source, place, device, limit)
    training.compiled = device.type == "cuda" and recipe.compile and not options.no_compile
    training.run(options.out / f"{recipe.teacher}.safetensors" if recipe.teacher else None)
    guidance, steps = (1.0, 4) if recipe.teacher else (options.guidance, 20)
    count = 2 if options.quick else 16 if recipe.frames == 1 else 4
    model, tokens = weights.load(place, device), recipe.stages[-1].tokens
    pixels, captions = sample(model, source, tokens, count, steps, guidance)
    draw_sheet(pixels, captions, options.out / f"{name}.jpg")
    size = place.stat().st_size / 1e6
    print(f"{name}: {training.steps} steps, {training.seconds:.0f} s, {size:.1f} MB", flush=True)


def _pack(options: argparse.Namespace) -> None:
    import os
    import shutil

    from .. import packing

    def add(folder: Path) -> None:
        shutil.copy(options.data, folder / "emoji.zip")
        autoencoder = Path("benchmarks", "trained", "taef2")
        shutil.copytree(loading.ROOT / autoencoder, folder / "token-merge" / autoencoder)
        comfy = Path(os.environ["COMFYUI_PATH"]) / "comfy"
        shutil.copytree(comfy / "sd1_tokenizer", folder / "comfyui" / "comfy" / "sd1_tokenizer")
        shutil.copy(comfy / "sd1_clip_config.json", folder / "comfyui" / "comfy")

    arguments = 'run --device cuda --minutes 9 --data "$here/emoji.zip" --out "$here/trained"'
    print(packing.pack(options.folder, "benchmarks.training.cli", arguments, add))
