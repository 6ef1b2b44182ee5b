"""Training on scenes of emoji, on a few drawn pictures in their place."""

from __future__ import annotations

import inspect
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch
from comfy.taesd.taesd import Encoder
from PIL import Image, ImageDraw
from support.packed import run_packed

from benchmarks import packing
from benchmarks.trained import autoencoder, text, weights
from benchmarks.trained.flux import FluxShape
from benchmarks.trained.layouts import (
    GROUNDS,
    MOTIONS,
    RELATIONS,
    SURFACES,
    Layouts,
    list_held_out,
)
from benchmarks.training import cli, emoji, optimizers, options, run
from benchmarks.training.captions import Captions
from benchmarks.training.composing import compose
from benchmarks.training.library import Library
from benchmarks.training.pool import Source
from benchmarks.training.recipes import ON_CPU, ON_GPU, Recipe, Stage
from benchmarks.training.trainer import Limit, Training

CPU = torch.device("cpu")
NAMES = ["a red square", "a blue square"]
has_autoencoder = pytest.mark.skipif(
    "use_gn" not in inspect.signature(Encoder).parameters,
    reason="this ComfyUI does not know taef2",
)


@pytest.fixture(scope="module")
def selection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two squares that fill most of their picture, and clips of them."""
    place = tmp_path_factory.mktemp("emoji") / "emoji.zip"

    def write(picture: Image.Image) -> bytes:
        file = io.BytesIO()
        picture.save(file, "webp", lossless=True)
        return file.getvalue()

    with zipfile.ZipFile(place, "w") as archive:
        for code, colour in (("1", "red"), ("2", "blue")):
            picture = Image.new("RGBA", (256, 256))
            ImageDraw.Draw(picture).rectangle((20, 20, 235, 235), colour)
            clip = Image.new("RGBA", (256, 256 * 3))
            for frame in range(3):
                clip.paste(picture, (0, 256 * frame))
            archive.writestr(f"{code}.webp", write(picture))
            archive.writestr(f"{code}-moving.webp", write(clip))
        for name in SURFACES:
            archive.writestr(f"{name}.webp", write(Image.new("RGB", (64, 64), "green")))
        subjects = [(name, code, True) for name, code in zip(NAMES, "12", strict=True)]
        archive.writestr(emoji.NAMES, json.dumps(subjects))
    return place


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("cat", "a cat"),
        ("octopus", "an octopus"),
        ("grapes", "grapes"),
        ("bus", "a bus"),
        ("glass of milk", "a glass of milk"),
    ],
)
def test_a_name_has_its_article(label: str, name: str) -> None:
    assert emoji.add_article(label) == name


def pack_files(place: Path, files: dict[str, bytes]) -> Path:
    """As npm packs them."""
    with tarfile.open(place, "w:gz") as archive:
        for name, file in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(file)
            archive.addfile(member, io.BytesIO(file))
    return place


def test_the_selection_has_what_the_packages_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Emoji of other kinds are left out, and so are clips of what is no animal."""
    subgroups = {"0": "animal-mammal", "1": "food-fruit", "2": "country-flag"}
    labels = ["cat", "lemon", "flag"]
    described = [
        {"label": label, "hexcode": f"1F{number}", "subgroup": number}
        for number, label in enumerate(labels)
    ]
    frames = [Image.new("RGBA", (256, 256), (9 * frame, 0, 0, 255)) for frame in range(20)]
    picture, clip = io.BytesIO(), io.BytesIO()
    frames[0].save(picture, "webp")
    frames[0].save(clip, "webp", save_all=True, append_images=frames[1:])
    stills = {f"assets/1f{number}-fe0f.webp": picture.getvalue() for number in range(3)}
    names = {
        "en/data.json": json.dumps(described).encode(),
        "meta/groups.json": json.dumps({"subgroups": subgroups}).encode(),
    }
    packages = iter(
        pack_files(tmp_path / f"{number}.tgz", files)
        for number, files in enumerate(
            [names, stills, dict.fromkeys(stills, clip.getvalue()), *3 * [{}]]
        )
    )
    monkeypatch.setattr(emoji, "_fetch", lambda *_: next(packages))
    place = emoji.load(tmp_path)
    assert Library.load(place, False).names == ["a cat", "a lemon"]
    moving = Library.load(place, True)
    assert (moving.names, len(moving.frames[0])) == (["a cat"], emoji.FRAMES)
    reds = moving.frames[0, :, 0, 128, 128].long()
    assert (reds.diff() > 0).all()


@pytest.mark.parametrize("moving", [False, True])
def test_training_sees_no_combination_that_is_held_out(
    moving: bool, generator: torch.Generator
) -> None:
    seen = Layouts.draw(4000, 50, generator, moving=moving)
    unseen = Layouts.draw(4000, 50, generator, moving=moving, held_out=True)
    assert not seen.held_out.any()
    assert unseen.held_out.all()
    for drawn in (seen, unseen):
        assert set(drawn.ground.tolist()) == set(range(len(GROUNDS)))


def test_captions_that_are_held_out_come_once() -> None:
    names = [f"thing {number}" for number in range(8)]
    captions = list_held_out(64, names, moving=False)
    assert len(set(captions)) == 64
    assert list_held_out(16, names, moving=False) == captions[:16]
    with pytest.raises(RuntimeError, match="expected 999 or more"):
        list_held_out(999, NAMES, moving=False)


@pytest.mark.parametrize("moving", [False, True])
def test_a_caption_of_pieces_is_encoded_as_the_text_encoder_does(
    moving: bool, generator: torch.Generator
) -> None:
    layouts = Layouts.draw(8, 2, generator, moving=moving)
    captions = Captions.make(NAMES, moving)
    clip = text.build_encoder()
    expected = [text.encode(clip, one) for one in layouts.tell(NAMES, moving)]
    torch.testing.assert_close(captions.encode(layouts), torch.stack(expected))
    torch.testing.assert_close(captions.encode_nothing()[0], text.encode(clip, ""))


def find_middle(pixels: torch.Tensor, channel: int) -> torch.Tensor:
    """Of what has this colour alone, (x, y) from 0 to 1. pixels: (3, H, W)."""
    others = [one for one in range(3) if one != channel]
    marked = (pixels[channel] > 0.9) & (pixels[others] < 0.1).all(0)
    assert marked.any()
    places = marked.nonzero().float().mean(0)
    return places.flip(0) / pixels.shape[-1]


@pytest.mark.parametrize(
    ("words", "axis", "sign"),
    [("left of", 0, -1), ("right of", 0, 1), ("above", 1, -1), ("below", 1, 1)],
)
def test_a_subject_is_where_the_caption_says(
    words: str, axis: int, sign: int, selection: Path, generator: torch.Generator
) -> None:
    gray = GROUNDS.index("on a gray background")
    numbers = [[0], [1], [RELATIONS.index(words)], [gray]]
    layouts = Layouts(*(torch.tensor(one).expand(6) for one in numbers))
    pixels = compose(layouts, Library.load(selection, False), 64, 1, generator)
    assert layouts.tell(NAMES, False)[0] == f"{NAMES[0]} {words} {NAMES[1]} on a gray background"
    for scene in pixels[:, :, 0]:
        between = find_middle(scene, 0) - find_middle(scene, 2)
        assert sign * between[axis] > 0.2


@pytest.mark.parametrize(("variety", "varies"), [(0.0, False), (1.0, True)])
def test_without_variety_a_subject_is_always_in_the_same_place(
    variety: float, varies: bool, selection: Path, generator: torch.Generator
) -> None:
    numbers = [0, -1, 0, GROUNDS.index("on a gray background")]
    layouts = Layouts(*(torch.tensor([one] * 6) for one in numbers))
    pixels = compose(layouts, Library.load(selection, False), 64, 1, generator, variety)
    middles = torch.stack([find_middle(scene, 0) for scene in pixels[:, :, 0]])
    assert bool((middles.std(0) > 0.01).all()) is varies


@pytest.mark.parametrize(("words", "axis", "sign"), [("moving left", 0, -1), ("moving down", 1, 1)])
def test_a_clip_moves_as_the_caption_says(
    words: str, axis: int, sign: int, selection: Path, generator: torch.Generator
) -> None:
    gray = GROUNDS.index("on a gray background")
    numbers = [[0], [-1], [MOTIONS.index(words)], [gray]]
    layouts = Layouts(*(torch.tensor(one).expand(3) for one in numbers))
    pixels = compose(layouts, Library.load(selection, True), 64, 5, generator)
    assert pixels.shape == (3, 3, 5, 64, 64)
    for clip in pixels:
        middles = torch.stack([find_middle(frame, 0)[axis] for frame in clip.unbind(1)])
        assert (sign * middles.diff() > 0.02).all()


def test_single_frames_of_clips_lie_all_along_the_way(
    selection: Path, generator: torch.Generator
) -> None:
    numbers = [0, -1, MOTIONS.index("moving left"), GROUNDS.index("on a gray background")]
    layouts = Layouts(*(torch.tensor([one] * 8) for one in numbers))
    pixels = compose(layouts, Library.load(selection, True), 64, 1, generator)
    places = torch.stack([find_middle(scene, 0)[0] for scene in pixels[:, :, 0]])
    assert places.max() - places.min() > 0.2


@has_autoencoder
@pytest.mark.parametrize("frames", [(), (2,)])
def test_the_autoencoder_gives_back_what_it_was_given(frames: tuple[int, ...]) -> None:
    pixels = torch.full((2, 3, *frames, 64, 48), 0.5)
    pixels[..., 20:44, 10:30] = torch.tensor([0.9, 0.3, 0.2]).view(3, *[1] * len(frames), 1, 1)
    latent = autoencoder.encode(pixels)
    assert latent.shape == (2, 32, *frames, 8, 6)
    found = autoencoder.decode(latent)
    assert found.shape == pixels.shape
    assert (found - pixels).square().mean() < 0.002


def test_weights_in_8_bits_are_read_back(tmp_path: Path, generator: torch.Generator) -> None:
    place = tmp_path / "weights.safetensors"
    tensors = {"a": torch.randn(4, 9, generator=generator), "b": torch.randn(4)}
    weights.save(place, tensors, torch.ones(32), FluxShape(channels=32), steps=3)
    found = weights.read(place)
    step = tensors["a"].abs().amax(1, keepdim=True) / 127
    assert ((found.tensors["a"] - tensors["a"]).abs() <= 0.51 * step).all()
    assert torch.equal(found.tensors["b"], tensors["b"])
    assert (found.shape, found.facts) == (FluxShape(channels=32), {"steps": 3})


@has_autoencoder
def test_training_learns_and_goes_on_where_it_was_cut_off(selection: Path, tmp_path: Path) -> None:
    stages = (Stage(2, 8, 0.5), Stage(4, 4, 0.5))
    recipe = Recipe(FluxShape(1, 1, 1, 32), stages, share=1.0)
    source = Source.load(selection, 1, CPU)
    place = tmp_path / "flux.safetensors"
    told: list[str] = []
    first = Training(recipe, source, place, CPU, Limit(steps=30), tell=told.append)
    first.run()
    second = Training(recipe, source, place, CPU, Limit(steps=40), tell=told.append)
    second.run()
    assert "flux: going on from step 30" in told
    assert [step for step, _ in second.losses] == list(range(10, 50, 10))
    assert second.losses[-1][1] < 0.8 * second.losses[0][1]
    assert weights.read(place).facts["steps"] == 40


@pytest.mark.parametrize("shape", [(16, 48), (48, 16)])
def test_single_precision_gives_the_update_of_torchs_muon(
    shape: tuple[int, int], generator: torch.Generator
) -> None:
    update = torch.randn(shape, generator=generator)
    of_torch = optimizers.IN_BFLOAT16(update, (3.4445, -4.775, 2.0315), 5, 1e-7).float()
    found = optimizers.orthogonalise(update, (3.4445, -4.775, 2.0315), 5, 1e-7)
    assert (found - of_torch).norm() < 0.02 * of_torch.norm()


@pytest.mark.parametrize("recipes", [ON_CPU, ON_GPU])
def test_all_models_fit_beside_the_autoencoder_in_40_megabytes(recipes: dict[str, Recipe]) -> None:
    weights_of = [
        sum(one.numel() for one in build.model.diffusion_model.parameters())
        for recipe in recipes.values()
        for build in [weights.build_network(recipe.shape, torch.ones(32))]
    ]
    assert 1.02 * sum(weights_of) + autoencoder.PLACE.stat().st_size < 40e6


@has_autoencoder
@pytest.mark.skipif(os.name == "nt", reason="run.sh is for POSIX shells")
def test_the_packed_folder_trains_every_model(
    selection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the packages, which would need a package index; this environment has them."""
    monkeypatch.setattr(packing, "_install", lambda *_: None)
    folder = tmp_path / "folder"
    assert cli.main(["pack", str(folder), "--data", str(selection)]) == 0
    run_packed(folder)
    made = {file.name for file in (folder / "trained").iterdir()}
    assert made == {f"{name}.{end}" for name in ON_CPU for end in ("jpg", "safetensors")}


@pytest.mark.thorough
@has_autoencoder
def test_models_are_trained_at_the_same_time_as_on_a_gpu(selection: Path, tmp_path: Path) -> None:
    arguments = ["run", "--quick", "--data", str(selection), "--out", str(tmp_path)]
    assert run.train_side_by_side(options.parse(arguments)) == 0
    assert {place.name for place in tmp_path.glob("*.jpg")} == {f"{name}.jpg" for name in ON_CPU}
