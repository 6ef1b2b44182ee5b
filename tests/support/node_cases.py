"""Random inputs of our nodes, latents and runs for them, and what ComfyUI alone makes of those."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import comfy.sample
import torch
from comfy.model_management import current_loaded_models
from comfy.model_patcher import ModelPatcher
from comfy_api.latest import io
from hypothesis import strategies as st
from token_merge.nodes.compare import TokenReductionCompare
from torch import Tensor

from .small_models import IMAGES, VIDEOS, SampleRequest, SmallModel
from .unet_sampling import draw_prompts
from .unets import build_unet

UNETS = ("SD15", "SDXL", "SSD1B")
ODD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.lists(st.floats(), max_size=2),
    st.sampled_from([torch.tensor(0.5), {}, b"2", 1e308, -1, 2**64]),
)
SIDES = st.one_of(st.integers(15, 30), st.integers(15, 30), st.integers(1, 40))
RARELY = st.sampled_from([*[False] * 9, True])
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
CONTENTS = ("zeros", "random", "one NaN", "one infinity", "all NaN", "huge")
LAYOUTS = ("contiguous", "channels last", "strided", "expanded")
SAMPLERS = ("euler", "euler_ancestral", "heun", "dpmpp_2m", "lcm", "uni_pc")


def valid_values(widget: io.Input) -> st.SearchStrategy[Any]:
    """What a user can choose in this input."""
    if isinstance(widget, io.Combo.Input):
        return st.sampled_from(list(widget.options))
    if isinstance(widget, io.Boolean.Input):
        return st.booleans()
    kind = st.floats if isinstance(widget, io.Float.Input) else st.integers
    edges = st.sampled_from([widget.min, widget.max])
    return st.one_of(edges, st.just(widget.default), kind(widget.min, widget.max))


@dataclass(frozen=True)
class AppliedInputs:
    """A node with its inputs. is_valid: each of them is one that a user can choose."""

    node: type[io.ComfyNode]
    values: dict[str, Any]
    is_valid: bool

    def apply(self, model: Any) -> ModelPatcher:
        return self.node.execute(model, **self.values).args[0]


@st.composite
def applied_inputs(draw: st.DrawFn, nodes: tuple[type[io.ComfyNode], ...]) -> AppliedInputs:
    """Some inputs changed, seldom to a value that no user can choose; the others as they are."""
    node = draw(st.sampled_from(nodes))
    widgets = {each.id: each for each in node.GET_SCHEMA().inputs if each.id != "model"}
    values = {name: widget.default for name, widget in widgets.items()}
    most = draw(st.sampled_from([1, 2, 4, len(widgets)]))
    names = draw(st.lists(st.sampled_from([*widgets]), min_size=1, max_size=most, unique=True))
    values.update({name: draw(valid_values(widgets[name])) for name in names})
    if "start_percent" in values and not draw(RARELY):  # most hold some part of the schedule
        first, last = sorted((values["start_percent"], values["end_percent"]))
        first = draw(st.sampled_from([0.0, 0.0, min(first, 0.3)]))
        values.update(start_percent=first, end_percent=max(last, 0.5))
    is_valid = not draw(RARELY)
    if not is_valid:
        values[names[0]] = draw(ODD_VALUES)
    return AppliedInputs(node, values, is_valid)


def stacks(nodes: tuple[type[io.ComfyNode], ...]) -> st.SearchStrategy[list[AppliedInputs]]:
    """One node, seldom two, one behind the other."""
    count = RARELY.map(lambda two: 1 + two)
    return count.flatmap(
        lambda count: st.lists(applied_inputs(nodes), min_size=count, max_size=count)
    )


@dataclass(frozen=True)
class Latent:
    """A latent to be made. size: (B, C, *sides)."""

    size: tuple[int, ...]
    content: str
    layout: str
    dtype: torch.dtype

    def make(self) -> Tensor:
        generator = torch.Generator().manual_seed(3)
        x = torch.randn(self.size, generator=generator)
        if self.content == "zeros":
            x = torch.zeros_like(x)
        if self.content == "huge":
            x = x * 1e6
        if self.content == "all NaN":
            x = torch.full_like(x, float("nan"))
        if self.content.startswith("one") and x.numel():
            x.flatten()[x.numel() // 2] = float(self.content.split()[1])
        x = x.to(self.dtype)
        if self.layout == "channels last" and x.ndim in (4, 5):
            form = torch.channels_last if x.ndim == 4 else torch.channels_last_3d
            return x.contiguous(memory_format=form)
        if self.layout == "strided":
            return x.mT.contiguous().mT
        if self.layout == "expanded" and len(x):
            return x[:1].expand(len(x), *[-1] * (x.ndim - 1))
        return x


@st.composite
def latents(draw: st.DrawFn, channels: int, axes: int) -> Latent:
    """Mostly one that fits the model, of at most some thousand cells.

    axes: sides of the model's latents.
    """
    if draw(RARELY):
        axes = draw(st.integers(1, 4))
        channels = draw(st.sampled_from([channels, 1, 3, 4, 16]))
    high, wide = draw(SIDES), draw(SIDES)
    sides = [high, wide][:axes] if axes <= 2 else [draw(st.integers(1, 5))] * (axes - 2)
    sides = sides if axes <= 2 else [*sides, high, wide]
    most = max(1, min(64, 1600 // prod(sides)))
    batch = draw(st.one_of(st.just(1), st.integers(0, min(3, most)), st.integers(0, most)))
    return Latent(
        size=(batch, channels, *sides),
        content=draw(st.sampled_from([*CONTENTS[:2] * 3, *CONTENTS[2:]])),
        layout=draw(st.sampled_from(LAYOUTS)),
        dtype=draw(st.one_of(st.just(torch.float32), st.sampled_from(DTYPES))),
    )


@dataclass(frozen=True)
class Kind:
    """A kind of model. family: of a transformer, None for a UNet."""

    name: str
    family: SmallModel | None = None

    def build(self) -> ModelPatcher:
        return self.family.build() if self.family else build_unet(self.name)

    @property
    def latent_shape(self) -> tuple[int, int]:
        """Channels and axes."""
        return (self.family.channels, len(self.family.patch)) if self.family else (4, 2)

    def prompts(self, size: tuple[int, ...]) -> tuple[Any, Any]:
        if self.family:
            sides = size if len(size) == len(self.family.patch) else self.family.latent_size()
            run = SampleRequest(size=sides)
            return tuple(run.prompt(self.family, 7, seed) for seed in (2, 102))
        return draw_prompts(torch.Generator().manual_seed(2))


KINDS = (
    *(Kind(name) for name in UNETS),
    *(Kind(family.name, family) for family in (*IMAGES, *VIDEOS)),
)
QUICK_KINDS = tuple(kind for kind in KINDS if kind.name in ("SD15", "SDXL", "Flux", "Wan 2.1 T2V"))


@dataclass(frozen=True)
class SamplingCase:
    """What ComfyUI's KSampler node would do with this latent."""

    kind: Kind
    latent: Latent
    sampler: str
    steps: int
    cfg: float
    denoise: float

    def run(self, model: ModelPatcher) -> Tensor:
        latent = comfy.sample.fix_empty_latent_channels(model, self.latent.make())
        positive, negative = self.kind.prompts(tuple(latent.shape[2:]))
        try:
            return comfy.sample.sample(
                model,
                comfy.sample.prepare_noise(latent, 0),
                self.steps,
                self.cfg,
                self.sampler,
                "simple",
                positive,
                negative,
                latent,
                denoise=self.denoise,
                seed=0,
                disable_pbar=True,
            )
        finally:
            current_loaded_models.clear()  # see support.small_models.sampling

    def compare(self, model: ModelPatcher, patched: ModelPatcher) -> tuple[Any, ...]:
        """What the node Compare Token Reduction gives for the same run."""
        samples = self.latent.make()
        positive, negative = self.kind.prompts(tuple(samples.shape[2:]))
        try:
            return TokenReductionCompare.execute(
                model,
                patched,
                seed=0,
                steps=self.steps,
                cfg=self.cfg,
                sampler_name=self.sampler,
                scheduler="simple",
                positive=positive,
                negative=negative,
                latent_image={"samples": samples},
                denoise=self.denoise,
            ).args
        finally:
            current_loaded_models.clear()


@st.composite
def sampling_cases(draw: st.DrawFn, kinds: tuple[Kind, ...]) -> SamplingCase:
    kind = draw(st.sampled_from(kinds))
    return SamplingCase(
        kind=kind,
        latent=draw(latents(*kind.latent_shape)),
        sampler=draw(st.one_of(st.just("euler"), st.sampled_from(SAMPLERS))),
        steps=draw(st.integers(1, 3)),
        cfg=draw(st.sampled_from([1.0, 4.0])),
        denoise=draw(st.sampled_from([1.0, 1.0, 0.5])),
    )
