"""The command ``train``: fetches the data, trains the models, packs a folder that does."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from .. import loading
from . import emoji
from .options import parse

RESERVE = 40.0
"""Seconds for what is not training: imports, decoding the emoji, samples."""


def main(arguments: list[str], cache: Path | None = None) -> int:
    """0 where all went well. cache: where the emoji are kept, if not in a file that is named."""
    options = parse(arguments)
    began = time.monotonic()
    try:
        if options.data is None:
            if cache is None:
                raise RuntimeError("--data is missing, expected the selection of emoji")
            options.data = emoji.load(cache)
        if options.part == "run":
            loading.load(options.device)
            _train(options, began)
        elif options.part == "pack":
            _pack(options)
        else:
            print(options.data)
    except RuntimeError as error:
        print(f"Training failed. {error}")
        return 1
    return 0


def _train(options: argparse.Namespace, began: float) -> None:
    import torch

    from ..trained import weights
    from .pool import Source
    from .recipes import RECIPES, Recipe, Stage
    from .samples import draw_sheet, sample
    from .trainer import Limit, Training

    device = torch.device(options.device)
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True

    def fit(recipe: Recipe) -> Recipe:
        if options.quick:
            return recipe.shrink()
        stages = [one for one in recipe.stages if one.tokens <= (options.tokens or one.tokens)]
        if not stages:
            stages = [replace(recipe.stages[0], tokens=options.tokens)]
        whole = sum(one.share for one in stages)
        return replace(
            recipe,
            stages=tuple(
                Stage(one.tokens, min(one.batch, options.batch or one.batch), one.share / whole)
                for one in stages
            ),
        )

    recipes = {name: fit(RECIPES[name]) for name in options.models}
    shares = sum(recipe.share for recipe in recipes.values())
    steps = 4 if options.quick else options.steps or float("inf")
    subjects = 4 if options.quick else options.subjects
    for name, recipe in recipes.items():
        source = Source.load(options.data, recipe.frames, device, subjects)
        place = options.out / f"{name}.safetensors"
        seconds = (60 * options.minutes - RESERVE) * recipe.share / shares
        training = Training(recipe, source, place, device, Limit(seconds, steps))
        training.compiled = device.type == "cuda" and recipe.compile and not options.no_compile
        training.run(options.out / f"{recipe.teacher}.safetensors" if recipe.teacher else None)
        tokens = recipe.stages[-1].tokens
        model = weights.load(place, device)
        guidance, steps_taken = (1.0, 4) if recipe.teacher else (options.guidance, 20)
        count = 2 if options.quick else 16 if recipe.frames == 1 else 4
        pixels, captions = sample(model, source, tokens, count, steps_taken, guidance)
        draw_sheet(pixels, captions, options.out / f"{name}.jpg")
        size = place.stat().st_size / 1e6
        passed = time.monotonic() - began
        print(f"{name}: {training.steps} steps, {size:.1f} MB, {passed:.0f} s passed", flush=True)


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
