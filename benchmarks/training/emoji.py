"""Microsoft's Fluent Emoji as one small file: pictures and clips with alpha, and their names.

They come from the user's npm registry, where they lie in packages of lobehub's (MIT, as the emoji
are). The names are CLDR's, from emojibase-data (MIT). The grounds are scikit-image's photographs of
surfaces.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

EMOJI = "@lobehub/fluent-emoji"
PACKAGES = {
    "d01d0e2ca4e22cb402679532155342c71e2e871f25c32223c013b8b166ebdf5a": "emojibase-data@17.0.0",
    "c1bb7eee7de090205a232518a9ab4adb3df458bfbe8a1f78232991194c8b2e58": f"{EMOJI}-3d@1.1.0",
    "4c03ac178c1eabf2e2a16dd498f3cc2b92dc30ec3466ae38fdc497d4774c99ea": f"{EMOJI}-anim-1@1.0.0",
    "e431da8172e394036c330faa77648d6fbbae1fd3b0be95637c4497c9075019c0": f"{EMOJI}-anim-2@1.0.0",
    "3624d0c34c819c1794b74ccf6ae9034adff7c4cb6318dd2a645145f0196feb43": f"{EMOJI}-anim-3@1.0.0",
    "3d4c08f1e321f70808ef4996aba0ab575a9d97b6c56ffffc92cf6161a7836aa3": f"{EMOJI}-anim-4@1.0.0",
}
"""The first holds names, the second pictures, the others clips. The key is the SHA-256."""
ANIMALS = [f"animal-{kind}" for kind in ("mammal", "bird", "amphibian", "reptile", "marine")]
"""The subgroups of Unicode's list whose clips are taken."""
SUBGROUPS = (
    *(*ANIMALS, "animal-bug", "plant-flower", "plant-other", "food-fruit", "food-vegetable"),
    *("food-prepared", "food-sweet", "drink", "transport-ground", "transport-water"),
    *("transport-air", "sport", "game", "musical-instrument", "face-costume"),
)
"""Those whose pictures are taken: what people name at sight. Signs, flags and people with their
many skin tones are left out."""
FIRST = (
    *("cat face", "automobile", "sunflower", "penguin", "hamburger", "octopus", "rocket", "panda"),
    *("strawberry", "guitar", "fox", "pizza", "owl", "sailboat", "mushroom", "lion", "robot"),
    *("turtle", "pineapple", "tropical fish", "cactus", "elephant", "birthday cake", "rooster"),
    *("soccer ball", "dolphin", "banana", "frog", "airplane", "parrot", "red apple", "fire engine"),
    *("butterfly", "doughnut", "rose", "ghost", "crab", "giraffe", "shark", "horse", "flamingo"),
)
"""What is learned where the time suffices for few; the rest follows from all subgroups in turn."""
PHOTOGRAPHS = {
    "bricks": ("brick", (196, 120, 96)),
    "grass": ("grass", (130, 178, 84)),
    "gravel": ("gravel", (214, 206, 192)),
}
"""For each of ``layouts.SURFACES``, the photograph in scikit-image and, as it has no colours, what
its white becomes."""
SIDE = 256
FRAMES = 18
"""So many frames of a clip are kept, evenly spaced. It is a loop."""
NAMES = "names.json"
"""It lists (name as in a caption, code points, whether there is a clip), see ``FIRST``."""
SELECTION = "emoji-2.zip"
"""The number grows when the selection changes."""


def load(folder: Path) -> Path:
    """Fetch and select what is not there yet; returns the selection, a zip file of some MiB.

    Raises RuntimeError where npm fails or has another file than expected.
    """
    place = folder / SELECTION
    if place.exists():
        return place
    folder.mkdir(parents=True, exist_ok=True)
    names, pictures, *clips = [_fetch(*package, folder) for package in PACKAGES.items()]
    named, animals = _list_names(names)
    found = dict(_read(pictures, set(named)))
    moving = {
        code: sample_frames(file)
        for package in clips
        for code, file in _read(package, animals & found.keys())
    }
    unfinished = place.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w") as selection:
        for code, file in found.items():
            selection.writestr(f"{code}.webp", file)
        for code, file in moving.items():
            selection.writestr(f"{code}-moving.webp", file)
        for name, (photograph, white) in PHOTOGRAPHS.items():
            selection.writestr(f"{name}.webp", _colour(photograph, white))
        subjects = [(named[code], code, code in moving) for code in named if code in found]
        selection.writestr(NAMES, json.dumps(subjects))
    unfinished.replace(place)
    return place


def add_article(label: str) -> str:
    """As a caption names it: "a cat", "an octopus", "grapes"."""
    if re.search(r"(?<![sui])s$", label):
        return label
    return f"an {label}" if label[0] in "aeiou" else f"a {label}"


def sample_frames(file: bytes) -> bytes:
    """``FRAMES`` frames of an animated picture, one below the other."""
    with Image.open(io.BytesIO(file)) as clip:
        sheet = Image.new("RGBA", (SIDE, SIDE * FRAMES))
        for frame in range(FRAMES):
            clip.seek(frame * clip.n_frames // FRAMES)
            sheet.paste(clip.convert("RGBA").resize((SIDE, SIDE)), (0, frame * SIDE))
    return _write(sheet, 75)


def _write(picture: Image.Image, quality: int) -> bytes:
    file = io.BytesIO()
    picture.save(file, "webp", quality=quality)
    return file.getvalue()


def _colour(photograph: str, white: tuple[int, int, int]) -> bytes:
    import skimage.data  # only here: it is not on every machine that trains

    picture = Image.fromarray(getattr(skimage.data, photograph)()).convert("L")
    picture = ImageOps.autocontrast(picture.resize((2 * SIDE, 2 * SIDE)), cutoff=1)
    return _write(ImageOps.colorize(picture, "black", white), 85)


def _fetch(digest: str, package: str, folder: Path) -> Path:
    """The archive of a package, from the cache or the user's npm registry."""
    name = package.removeprefix("@").replace("/", "-").replace("@", "-") + ".tgz"
    place = folder / name
    if not place.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError("npm is missing, which fetches the emoji: install Node.js")
        command = [npm, "pack", package, "--silent", "--pack-destination", str(folder)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            raise RuntimeError(f"npm could not fetch {package}:\n{result.stderr.strip()}")
    found = hashlib.sha256(place.read_bytes()).hexdigest()
    if found != digest:
        raise RuntimeError(f"{place} has SHA-256 {found}, expected {digest}")
    return place


def _list_names(package: Path) -> tuple[dict[str, str], set[str]]:
    """The names of all emoji of ``SUBGROUPS`` by their codes, and the codes of the animals."""
    groups: dict[str, list[tuple[str, str]]] = {subgroup: [] for subgroup in SUBGROUPS}
    with tarfile.open(package) as archive:
        emoji, meta = (_read_json(archive, name) for name in ("en/data", "meta/groups"))
    for one in emoji:
        subgroup = meta["subgroups"].get(str(one.get("subgroup")))
        if subgroup in groups:
            groups[subgroup].append((_simplify(one["hexcode"]), add_article(one["label"])))
    mixed = [one for one in chain.from_iterable(zip_longest(*groups.values())) if one is not None]
    places = {add_article(label): place for place, label in enumerate(FIRST)}
    mixed.sort(key=lambda one: places.get(one[1], len(places)))
    animals = {code for subgroup in ANIMALS for code, _ in groups[subgroup]}
    return dict(mixed), animals


def _read_json(archive: tarfile.TarFile, name: str) -> Any:
    file = archive.extractfile(f"package/{name}.json")
    assert file is not None
    return json.load(file)


def _read(package: Path, codes: set[str]) -> Iterator[tuple[str, bytes]]:
    """The pictures of these codes, in the order of the archive."""
    with tarfile.open(package) as archive:
        for member in archive:
            code = _simplify(Path(member.name).stem)
            file = archive.extractfile(member) if member.name.endswith(".webp") else None
            if file is not None and code in codes:
                yield code, file.read()


def _simplify(code: str) -> str:
    """In small letters, without the code point that asks for a coloured picture."""
    return code.lower().replace("-fe0f", "")
