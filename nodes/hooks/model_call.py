"""What our hooks know of a sampling run and of one call of the model in it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

import torch
from comfy.model_base import BaseModel
from comfy.model_patcher import ModelPatcher
from torch import Tensor

from ...tome_core.draws import Draws
from ...tome_core.plan import Skipped
from ...tome_core.planning import Plans
from ...tome_core.schedule import PercentWindow, SigmaRange
from ...tome_core.settings import Part, Settings
from .run_report import RunReport, RunSummary
from .settings_stack import SettingsStack
from .step_clock import StepClock
from .turns import Turns

Acting = dict[Settings, frozenset[Part]]
"""What each setting reduces in a layer; no part twice."""

KEY = "token_merge"
"""Under which ``Attached`` lies in transformer_options; our wrappers have the same key."""


@dataclass
class Run:
    """One pass of a sampler; dropped at its end.

    ComfyUI's MultiGPU nodes call the model on all devices at once, each in a thread of its own.
    Whatever these calls do here is a single operation of a dict, a set or a counter, which needs
    no lock.

    Args:
        sigmas: its noise levels, descending.
        report: what was reduced and skipped so far.
        clock: when its steps began.
        told: when the nodes last showed what was done, or when the run began.
        prediction: number of the sampler's request for a prediction. The model may be called
            several times for one.
        turns: of what is drawn.
        windows: the windows of the settings, as noise levels.
        plans: those that layers share.
        whole: see ``ModelCall.find_whole``.
        whole_sizes: whether every layer of a UNet stays whole, by its latent's size and device.
    """

    sigmas: tuple[float, ...]
    report: RunReport = field(default_factory=RunReport)
    clock: StepClock = field(default_factory=StepClock)
    told: float = field(default_factory=time.monotonic)
    prediction: int = 0
    turns: Turns = field(default_factory=Turns)
    windows: dict[PercentWindow, SigmaRange] = field(default_factory=dict)
    plans: dict[Hashable, SharedPlans] = field(default_factory=dict)
    whole: dict[Hashable, set[Hashable]] = field(default_factory=dict)
    whole_sizes: dict[Hashable, bool] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)
    _calls_of: Counter[Hashable] = field(default_factory=Counter)
    _repeated: set[Hashable] = field(default_factory=set)

    def begin_prediction(self) -> None:
        self.prediction += 1
        self._calls_of.clear()

    def begin_call(self, images: Hashable) -> int:
        """The number of the call."""
        self._calls_of[images] += 1
        if self._calls_of[images] > 1:
            self._repeated.add(images)
        return next(self._numbers)

    def note_repeat(self, images: Hashable) -> None:
        """Within one call the model ran again with the same prompts."""
        self._repeated.add(images)

    def keeps_plans(self, images: Hashable) -> bool:
        """False where the model ran several times with the same prompts for one prediction.

        These are tiles or context windows: different pictures, which cannot be told apart.
        """
        return images not in self._repeated


@dataclass(frozen=True)
class SharedPlans:
    """plans: or why there are none. call: number of the call that made it. age: its period.

    readers: (number of a call, key of a layer) of those that took it.
    """

    plans: Plans | Skipped
    call: int
    age: int
    readers: set[Hashable]


@dataclass(frozen=True, eq=False)
class ModelCall:
    """One call of the diffusion model.

    Args:
        number: of the call in its run.
        stack: all settings on the model.
        active: those whose window holds this call's noise level.
        step: number of the step of the run that it belongs to, None where nothing depends on it.
        turn: see ``Turns``.
        images: names what the batch holds.
        run: the pass of the sampler.
    """

    number: int
    stack: SettingsStack
    active: tuple[Settings, ...]
    step: int | None
    turn: int
    images: Hashable
    run: Run
    _acting: dict[int, Acting] = field(default_factory=dict)

    def find_acting(self, downsample: int) -> Acting:
        """The settings that act now on layers of this resolution."""
        acting = self._acting.get(downsample)
        if acting is None:
            resolutions = self.stack.resolutions
            found = {each: each.find_parts(downsample, resolutions) for each in self.active}
            acting = {settings: parts for settings, parts in found.items() if parts}
            self._acting[downsample] = acting
        return acting

    def find_whole(self, *given: Hashable) -> set[Hashable]:
        """Names of the attention calls of this run in which nothing was reduced; add to it.

        They were reported, and need not be planned anew. given: what the plans of this call of the
        model depend on, beside the settings that act.
        """
        return self.run.whole.setdefault((self.active, *given), set())

    def make_draws(self, seed: int, of: tuple[int | str, ...], device: torch.device) -> Draws:
        """The draws of one layer, or of what ``of`` names."""
        return Draws((seed, *self.run.turns.origin, *of), device, self.turn)


class Architecture(Protocol):
    """What differs between UNets and transformers."""

    @property
    def resolutions(self) -> tuple[int, ...]:
        """Downsampling of the self-attention layers, finest first."""

    def check(self, settings: Settings) -> tuple[str, ...]:
        """What is to be said of inputs without effect; raises ValueError where settings do not
        fit.
        """

    def patch(self, model: ModelPatcher, stack: SettingsStack) -> None:
        """Add what has to be on a freshly cloned model before it is called."""

    def reduce(
        self, call: ModelCall, inputs: ModelInputs
    ) -> AbstractContextManager[dict[str, Any]]:
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
    listeners: tuple[Callable[[RunSummary], None], ...] = ()
    run: Run | None = None
    call: Any = None


def add_call(options: dict[str, Any], call: Any) -> dict[str, Any]:
    """A copy of transformer_options in which our hooks find ``call``."""
    return {**options, KEY: replace(options[KEY], call=call)}


def find_call(options: Mapping[str, Any]) -> Any:
    """The call that ``add_call`` put there, None where there is none."""
    attached: Attached | None = options.get(KEY)
    return attached.call if attached else None
