"""The command ``train``: fetches the data, trains the models, packs a folder that does."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import loading
from . import emoji
from .options import parse
from .run import train


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
            return train(options)
        if options.part == "pack":
            _pack(options)
        else:
            print(options.data)
    except RuntimeError as error:
        print(f"Training failed. {error}")
        return 1
    return 0


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
