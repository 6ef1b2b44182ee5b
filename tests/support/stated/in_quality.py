"""What docs/quality.md says."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import intervals
from benchmarks.quality.patches import DOWNSAMPLE_BY_DEFAULT, MERGE_BY_DEFAULT
from benchmarks.quality.regimes import STANDARD
from benchmarks.quality.variants import IN_INT8
from support.share_read import share_read

from .in_documents import Stated
from .numbers import (
    ALL_REDUCED,
    LARGE,
    WINDOWED,
    compare_pictures,
    count_pictures,
    find_clip,
    find_decibels,
    find_gain,
    find_time,
    list_variants,
)


def list_sentences() -> Iterator[Stated]:
    """Of all of its prose."""
    page = ["docs/quality.md"]
    unets, fluxes, wans, (of_four,) = map(list_variants, STANDARD)
    unet, flux, (wan, wan_of_eight, guided_wan) = unets[0], fluxes[0], wans
    (most,) = {count_pictures(each) for each in (*unets, *fluxes, of_four, *wans[:-1])}
    said = "Every figure rests on {} pictures or clips, and Wan with cfg 5 on {}."
    yield page, said, [most, count_pictures(guided_wan)]
    both = DOWNSAMPLE_BY_DEFAULT, ALL_REDUCED
    times = [f"{find_time(shape, name):.0%}"[:-1] for shape in WINDOWED for name in both[::-1]]
    yield page, "raise the time from {} to {} % on Flux and from {} to {} % on Wan.", times
    gains = [find_gain(each, *both) for each in (flux, of_four, wan)]
    yield page, "the PSNR is then {:.1f} to {:.1f} dB higher", [min(gains), max(gains)]
    fewer = [find_decibels(of_four[name]) for name in (DOWNSAMPLE_BY_DEFAULT, "unpatched, 3 steps")]
    yield page, "the default has {:.1f} dB, and 3 of 4 steps have {:.1f} dB in more time", fewer
    pair = unet["Token Downsample ×4"], unet["ToDo ×2"]
    ours, todo = ([f"{each.pairs:.0%}"[:-1], intervals.mean(each.decibels)] for each in pair)
    yield page, "×4 reads {} % of the pairs with {} dB in the first column", ours
    yield page, "and ToDo ×2 reads {} % with {} dB.", todo
    over_rivals = [
        [compare_pictures(each, rival).mean for each in unets]
        for rival in (MERGE_BY_DEFAULT, "ToDo ×2")
    ]
    said = (
        "Of the same pictures, the default is {:.1f} to {:.1f} dB above Token Merge and "
        "{:.1f} to {:.1f} dB above ToDo."
    )
    yield page, said, [pick(each) for each in over_rivals for pick in (min, max)]
    over_steps = [
        compare_pictures(wan, "unpatched, 3 steps"),
        compare_pictures(wan_of_eight, "unpatched, 6 steps"),
    ]
    said = "Of the same {} clips, the default is {} dB above 3 of 4 steps, {} dB above 6 of 8 steps"
    yield page, said, [most, *over_steps]
    over_sol = compare_pictures(wan, "Sol-Attn, core's defaults")
    yield page, "and with 4 steps {} dB above Sol-Attn.", [over_sol]
    losses = [find_gain(each, DOWNSAMPLE_BY_DEFAULT, IN_INT8) for each in (flux, of_four, wan)]
    yield page, "the PSNR is {:.1f} to {:.1f} dB lower.", [abs(min(losses)), max(losses)]
    small = [f"{each[ALL_REDUCED].pairs:.0%}"[:-1] for each in (flux, wan)]
    yield page, "than on these small pictures and clips ({} and {} %)", small
    large = [f"{share_read(find_clip(name).stream):.0%}"[:-1] for name in LARGE]
    yield page, "of queries and keys (Flux {} %, Wan {} %)", large
