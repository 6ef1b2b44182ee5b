"""What the help pages, the tooltips and the notes of the workflows say."""

from __future__ import annotations

from collections.abc import Iterator

from token_merge.nodes.comparison.report import IN_WORDS
from token_merge.nodes.comparison.run import WARM_UP_STEPS
from token_merge.nodes.hooks.transformer.attention import LOCAL_WINDOW
from token_merge.tome_core import DownsampleSettings, MergeSettings
from token_merge.tome_core.merging.local_matching import CELLS_PER_SIDE
from token_merge.tome_core.merging.planning import LEAST_SHARE, LEAST_TOKENS
from token_merge.tome_core.schedule import EARLY

from .in_documents import Stated
from .numbers import (
    EARLY_PERCENT,
    FAR,
    LAST,
    count_early,
    list_sides,
)


def list_sentences() -> Iterator[Stated]:
    """Of all of them."""
    yield from list_of_help()
    yield from list_of_comparison()
    yield from list_of_notes()


def list_of_help() -> Iterator[Stated]:
    """Translations of an input are compared with its tooltip elsewhere."""
    names = ["TokenDownsample", "TokenMerge", "TokenDownsampleAdvanced", "TokenMergeAdvanced"]
    english, chinese, korean = (
        [f"web/docs/{name}{language}.md" for name in names] for language in ("", "/zh", "/ko")
    )
    downsample, merge = ([page, f"{page[:-3]}Advanced.md"] for page in english[:2])
    early, side = [EARLY_PERCENT], LOCAL_WINDOW
    yield [*english, "tooltips"], "computes the first {}% of the sampling schedule", early
    yield chinese, "采样过程的前 {}% 由原模型计算", early
    yield korean, "샘플링 과정의 처음 {}%는 원본 모델로 실행합니다", early
    steps = count_early(4, 8, 20)
    yield english, "they are {} of 4 steps, {} of 8 and {} of 20.", steps
    yield chinese, "4 步中的 {} 步、8 步中的 {} 步、20 步中的 {} 步", steps
    yield korean, "4스텝 중 {}스텝, 8스텝 중 {}스텝, 20스텝 중 {}스텝", steps
    yield english[2:], "A `start_percent` below {} then acts as {}", [EARLY] * 2
    yield [*downsample, "tooltips"], "about 1 of {} keys elsewhere", [FAR]
    last = [side, LAST, LAST]
    yield downsample, "with a window of {}, a `factor` above {} reads as many keys as {}.", last
    yield ["tooltips"], "with {}, a factor above {} reads as many as {})", last
    yield downsample, '"auto": {} on transformers', [side]
    yield ["tooltips"], "auto: {} on transformers", [side]
    yield english[3:], "and one of {} elsewhere", [FAR]
    yield english[3:], '"auto" is {}.', [side]
    yield ["tooltips"], "auto: {}. off:", [side]
    most = 1 - 1 / (MergeSettings.stride_x * MergeSettings.stride_y)
    yield merge, "ratio below {} changes nothing", [LEAST_SHARE]
    yield merge[:1], "A ratio above {} acts as {}", [most] * 2
    yield merge[1:], "{} with strides of 2", [most]
    yield ["tooltips"], "below {} it changes nothing, and above {} it acts as {}.", [
        LEAST_SHARE, most, most,
    ]  # fmt: skip
    around = CELLS_PER_SIDE + 2
    yield merge[1:], "at most {} × {}, so its cost", [around] * 2
    pages = [f"web/docs/TokenMerge{language}.md" for language in ("", "/zh", "/ko")]
    said = "fewer than {} tokens", "不足 {} 个 token", "{}개보다 적은 레이어"
    for one, sentence in zip(pages, said, strict=True):
        yield [one], sentence, [LEAST_TOKENS]


def list_of_comparison() -> Iterator[Stated]:
    pages = [f"web/docs/TokenReductionCompare{language}.md" for language in ("", "/zh", "/ko")]
    said = "a warm-up of up to {} steps", "预热最多 {} 步", "최대 {}스텝을 예열"
    for page, sentence in zip(pages, said, strict=True):
        yield [page], sentence, [WARM_UP_STEPS]
    (alike, hard), (small, words) = list(IN_WORDS.items())[:2]
    values = [alike, hard, small, words]
    yield pages[:1], 'from {} on, the report says "{}"; from {} on, "{}"', values
    yield pages[1:2], '{} 以上，报告称为难以分辨（"{}"）；{} 以上，称为差别很小（"{}"）', values
    said_in_korean = '{} 이상이면 보고서에 구별하기 어렵다("{}")고, {} 이상이면 차이가 작다("{}")고'
    yield pages[2:], said_in_korean, values


def list_of_notes() -> Iterator[Stated]:
    of_flux, of_z_image, of_unet, of_wan = (
        f"workflows/Faster {name} with Token Downsample.json"
        for name in (
            "Flux at 1920x1088",
            "Z-Image Turbo at 1536x1536",
            "SD 1.5 at 1024x1024",
            "Wan 2.2 video in 4 steps",
        )
    )
    small, side = list_sides("Flux", gains=False), list_sides("SD 1.5", gains=True)[0]
    yield [of_flux], "At {} x {} and below, fewer `steps` are the better way", small * 2
    yield [of_unet], "little is gained below {} x {} on a fast GPU", [side] * 2
    pages = [of_flux, of_z_image, of_unet, of_wan]
    yield pages, "`factor` at {:g}", [DownsampleSettings.factor]
