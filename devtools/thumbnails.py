"""``python -m devtools thumbnails``: the pictures of the examples in ComfyUI's template browser.

Each example is run on a server as it is, except for a small trained model of its kind in place of
its model files, and what that model needs: once with our nodes bypassed, once with them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from . import cache, graph, picture
from .client import Client, RunError
from .options.thumbnails import parse
from .progress import Progress
from .server import ServerError, running

WIDTH = 512
MARGIN = 8
TEXT_SIZE = 25
SHOWN_FRAMES = 4
"""So many of a video are shown, from the first to the last, in two rows."""


@dataclass(frozen=True)
class Thumbnail:
    """path: of the workflow. text: a prompt that the small model knows. caption: a line for each
    thing that is to be said of the run. values: changed inputs, by class or id of nodes.
    """

    path: Path
    text: str
    caption: tuple[str, ...]
    values: dict[str, dict[str, Any]]


def _size(pixels: int) -> dict[str, int]:
    return {"width": pixels, "height": pixels}


SIGMAS = [round(3 * left / (12 + 2 * left), 4) for left in range(12, -1, -1)]
"""They are those of 12 steps with the shift of 3 that the small Wan was trained with."""

# One token is 8 x 8 pixels.
THUMBNAILS = (
    Thumbnail(
        graph.SD15,
        "a sunflower on a blue gradient",
        ("factor 2, small test UNet, 20 steps", "64 x 64 tokens, as SD 1.5 at 512 x 512"),
        {"EmptyLatentImage": _size(512), "KSampler": {"cfg": 3.0}},
    ),
    Thumbnail(
        graph.SECOND_PASS,
        "a rocket on a purple gradient",
        ("factor 2, small test UNet, 20 steps each", "32 x 32 tokens, then 64 x 64 tokens"),
        {"EmptyLatentImage": _size(256), "KSampler": {"cfg": 3.0}},
    ),
    Thumbnail(
        graph.FLUX,
        "a penguin on a purple gradient",
        ("factor 2, small test Flux, 20 steps", "64 x 64 tokens"),
        {"EmptySD3LatentImage": _size(512), "KSampler": {"cfg": 3.0}},
    ),
    Thumbnail(
        graph.Z_IMAGE,
        "a hamburger on a blue gradient",
        ("factor 2, small test Flux, 8 steps", "64 x 64 tokens"),
        {
            "EmptySD3LatentImage": _size(512),
            "KSampler": {"cfg": 3.0},
            "ModelSamplingAuraFlow": {"shift": 1.0},
        },
    ),
    Thumbnail(
        graph.WAN,
        "a penguin moving left on a green gradient",
        ("factor 2, small test Wan, 12 steps", "4 of 9 frames of 32 x 32 tokens"),
        {
            "EmptyHunyuanLatentVideo": {**_size(256), "length": 33},
            # The small model is not made for 4 steps.
            "15": {"steps": 12, "end_at_step": 6, "cfg": 3.0},
            "16": {"steps": 12, "start_at_step": 6, "end_at_step": 12, "cfg": 3.0},
            "ModelSamplingSD3": {"shift": 3.0},  # what the small model was trained with
        },
    ),
    Thumbnail(
        graph.LTX,
        "a lion moving right on a purple background",
        ("factor 2, small test Wan, 12 + 4 steps", "4 of 9 frames of 32 x 32 tokens"),
        {
            # With fewer tokens the small model draws badly, so the second pass is not larger.
            "EmptyHunyuanLatentVideo": {**_size(256), "length": 33},
            "LatentUpscaleBy": {"scale_by": 1.0},
            "15": {"sigmas": ", ".join(map(str, SIGMAS))},
            "21": {"sigmas": ", ".join(map(str, SIGMAS[-5:]))},
            "SamplerCustom": {"cfg": 3.0},
        },
    ),
)


def main(arguments: list[str]) -> int:
    """Draw the thumbnails beside the workflows; the exit code is 0 where all were drawn."""
    parse(arguments)
    runs = cache.folder() / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    try:
        with (
            tempfile.TemporaryDirectory(dir=runs, prefix="thumbnails-") as base,
            running(Path(base)) as server,
        ):
            _draw_all(Client(server))
    except (ServerError, RunError) as error:
        print(f"devtools: {error}")
        return 1
    except KeyboardInterrupt:
        print("Interrupted")
        return 130
    print(f"Drawn: {len(THUMBNAILS)} pictures in {graph.WORKFLOWS}")
    return 0


def _draw_all(client: Client) -> None:
    info = client.object_info()
    with Progress("Sampling") as progress:
        for thumbnail in THUMBNAILS:
            progress.stage(thumbnail.path.stem)
            unpatched, ours = (
                _run(client, thumbnail, workflow, info)
                for workflow in _unpatched_and_ours(thumbnail.path)
            )
            sheet = _draw(thumbnail.caption, unpatched, ours)
            sheet.save(thumbnail.path.with_suffix(".jpg"), quality=92)
    client.close()


def _unpatched_and_ours(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    workflow = graph.load(path)
    return graph.bypassed(workflow), workflow


def _run(
    client: Client, thumbnail: Thumbnail, workflow: dict[str, Any], info: dict[str, Any]
) -> list[Image.Image]:
    """The picture, or the frames of the video."""
    prompt = graph.with_frames(graph.to_prompt(workflow, info))
    prompt = graph.with_trained_model(prompt, thumbnail.text)
    for nodes, values in thumbnail.values.items():
        prompt = graph.with_values(prompt, nodes, **values)
    return client.run(prompt).images


def _draw(
    caption: Sequence[str], unpatched: Sequence[Image.Image], ours: Sequence[Image.Image]
) -> Image.Image:
    """Both side by side, what each is, and the caption: nearly square, as a card of the browser."""
    side = (WIDTH - 3 * MARGIN) // 2
    line = int(TEXT_SIZE * 1.3)
    sheet = Image.new("RGB", (WIDTH, side + (len(caption) + 1) * line + 5 * MARGIN), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(TEXT_SIZE)
    for number, (images, label) in enumerate(
        ((unpatched, "unpatched"), (ours, "Token Downsample"))
    ):
        left = MARGIN + number * (side + MARGIN)
        shown = _show(images).resize((side, side), Image.Resampling.BOX)
        sheet.paste(shown, (left, MARGIN))
        pen.text((left + side // 2, side + 2 * MARGIN), label, "black", font, anchor="ma")
    top = side + line + 4 * MARGIN
    pen.multiline_text((MARGIN, top), "\n".join(caption), "#444", font, spacing=4)
    return sheet


def _show(images: Sequence[Image.Image]) -> Image.Image:
    """A picture as it is; of a video, some frames."""
    if len(images) == 1:
        return images[0]
    last = len(images) - 1
    some = [images[number * last // (SHOWN_FRAMES - 1)] for number in range(SHOWN_FRAMES)]
    return picture.tiled(some, 2, gap=1)
