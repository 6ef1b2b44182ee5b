"""What our hooks know of a sampling run and of one call of the model in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from comfy.model_base import BaseModel
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from ....tome_core.draws import Draws
from ....tome_core.schedule import PercentRange, SigmaRange
from ....tome_core.settings import Settings, Target
from ..settings_stack import SettingsStack
from .draw_index import DrawIndex
from .report import Lines, RunReport

Acting = dict[Settings, frozenset[Target]]
"""It says what each setting reduces in a layer; no target is in it twice."""

KEY = "token_merge"
"""``Attached`` lies in transformer_options under this key; our wrappers have it too."""


@dataclass
class Run:
    """One pass of a sampler; dropped at its end.

    ComfyUI's MultiGPU nodes call the model on all devices at once, each in a thread of its own.
    Whatever these calls do here is a single operation of a dict or a set, which needs no lock.

    Args:
        sigmas: its noise levels, descending.
        prompted: whether there is a positive conditioning.
        report: what was reduced and skipped so far.
        reported_at: when the nodes last showed what was done, or when the run began.
        prediction: number of the sampler's request for a prediction. The model may be called
            several times for one.
        draw_index: of the draws.
        ranges: the percent ranges of the settings, as noise levels.
        called: whether the model was called.
        acted: the settings whose percent range held the noise level of a call.
        unreduced: see ``ModelCall.find_unreduced``.
        preferred: by model, see ``find_preferred``.
    """

    sigmas: tuple[float, ...]
    prompted: bool = True
    report: RunReport = field(default_factory=RunReport)
    reported_at: float = field(default_factory=time.monotonic)
    prediction: int = 0
    draw_index: DrawIndex = field(default_factory=DrawIndex)
    ranges: dict[PercentRange, SigmaRange] = field(default_factory=dict)
    called: bool = False
    acted: set[Settings] = field(default_factory=set)
    unreduced: dict[Hashable, set[Hashable]] = field(default_factory=dict)
    preferred: dict[int, Callable[..., Tensor] | None] = field(default_factory=dict)

    def explain_idle(self, settings: Settings) -> str:
        """Why no layer came to these settings, which could reduce some and skipped none."""
        if not self.called:
            if len(self.sigmas) < 2:
                return "the schedule has a single noise level, so the run had no steps"
            if not self.prompted:
                return "the positive conditioning is empty, so ComfyUI did not call the model"
            return "the sampler did not call the model"
        if settings not in self.acted:
            part = f"none of its steps lies in {settings.percent_range} of the schedule"
            if settings.exact_early_steps:
                return f"{part}; turn exact_early_steps off to reduce earlier ones"
            return part
        return (
            "in its steps another node computed the model's blocks or attention, as TeaCache does, "
            "or none was computed"
        )


@dataclass(frozen=True, eq=False)
class ModelCall:
    """One call of the diffusion model.

    Args:
        stack: all settings on the model.
        active: those whose percent range holds this call's noise level.
        acting: what the active ones reduce in layers of each resolution.
        draw_index: see ``DrawIndex``.
        run: the pass of the sampler.
    """

    stack: SettingsStack
    active: tuple[Settings, ...]
    acting: Mapping[int, Acting]
    draw_index: int
    run: Run

    def find_unreduced(self, *given: Hashable) -> set[Hashable]:
        """Names of the attention calls of this run in which nothing was reduced; add to it.

        They were reported, and need not be planned again. given: what the plans of this call of the
        model depend on, beside the settings that act.
        """
        return self.run.unreduced.setdefault((self.active, *given), set())

    def make_draws(self, seed: int, of: tuple[int | str, ...], device: torch.device) -> Draws:
        """The draws of one layer, or of what ``of`` names."""
        return Draws((seed, *self.run.draw_index.origin, *of), device, self.draw_index)


class Architecture(Protocol):
    """What differs between UNets and transformers."""

    @property
    def early(self) -> float:
        """The share of the schedule that stays exact by default; 0: none."""

    @property
    def resolutions(self) -> tuple[int, ...]:
        """Downsampling of the self-attention layers, finest first."""

    def list_remarks(self, settings: Settings) -> tuple[str, ...]:
        """What the user is told of inputs that have no effect."""

    def patch(self, model: ModelPatcher, stack: SettingsStack) -> None:
        """Add what has to be on a freshly cloned model before it is called."""

    def reduce(self, call: ModelCall, inputs: ModelInputs) -> dict[str, Any]:
        """The transformer_options with which the model is to be called."""


@dataclass(frozen=True)
class ModelInputs:
    """What one call of the model gets; nothing of it is changed.

    Args:
        base_model: the model that is called.
        latent: (B, C, H, W) or (B, C, F, H, W).
        prompt: (B, T, D).
        options: the transformer_options.
        conditioning: all other inputs by name.
    """

    base_model: BaseModel
    latent: Tensor
    prompt: Tensor | None
    options: dict[str, Any]
    conditioning: dict[str, Any]


@dataclass(frozen=True)
class Attached:
    """All that our hooks find in transformer_options.

    listeners: called at the end of each run. run: of the sampler, None outside of one. call: what
    the architecture made of the running model call.
    """

    architecture: Architecture
    stack: SettingsStack
    listeners: tuple[Callable[[Lines], None], ...] = ()
    run: Run | None = None
    call: Any = None


def add_call(options: dict[str, Any], call: Any) -> dict[str, Any]:
    """A copy of transformer_options in which our hooks find ``call``."""
    return {**options, KEY: replace(options[KEY], call=call)}


def find_call(options: Mapping[str, Any]) -> Any:
    """The call that ``add_call`` put there, None where there is none."""
    attached: Attached | None = options.get(KEY)
    return attached.call if attached else None


_running: ContextVar[Attached | None] = ContextVar("token_merge_running", default=None)


@contextmanager
def enter_call(attached: Attached) -> Iterator[None]:
    """The model is called within."""
    outer = _running.set(attached)
    try:
        yield
    finally:
        _running.reset(outer)


def find_attached() -> Attached | None:
    """What the model that runs in this thread was called with, for code that is given no options.

    None where none runs, or one without our nodes.
    """
    return _running.get()
