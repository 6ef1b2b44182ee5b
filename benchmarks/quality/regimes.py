"""How pictures are sampled: the combinations of sampler, schedule, steps and guidance in use."""

from __future__ import annotations

from dataclasses import dataclass, replace

SAMPLERS = ("euler", "dpmpp_2m", "euler_ancestral")
SCHEDULERS = ("normal", "simple", "karras")


@dataclass(frozen=True)
class Regime:
    """One way to sample.

    sampler, scheduler: by ComfyUI's names for them. cfg: scale of the guidance, against the empty
    caption where it is above 1; at 1 the model computes no negative prompt.
    """

    sampler: str
    scheduler: str
    steps: int
    cfg: float = 1.0

    @property
    def name(self) -> str:
        """Of its folder, and on the command line: "euler-normal-20-cfg1"."""
        return f"{self.sampler}-{self.scheduler}-{self.steps}-cfg{self.cfg:g}"

    @property
    def draws_noise(self) -> bool:
        """Whether the sampler adds noise in every step, so that other steps mean other noise."""
        return self.sampler == "euler_ancestral"

    def with_steps(self, steps: int | None) -> Regime:
        """The same with a schedule made anew for ``steps``; unchanged for None."""
        return self if steps is None else replace(self, steps=steps)

    def __str__(self) -> str:
        return f"{self.sampler}, {self.scheduler} schedule, {self.steps} steps, cfg {self.cfg:g}"


FOUR_STEPS = Regime("euler", "simple", 4)
GUIDANCE = 3.0
"""The least with which the models draw what one recognises; one that was distilled needs none."""
STANDARD = {
    "unet": (
        Regime("euler", "normal", 8, GUIDANCE),
        Regime("euler", "normal", 4, GUIDANCE),
        Regime("euler", "normal", 8),
        Regime("dpmpp_2m", "normal", 8, GUIDANCE),
        Regime("euler", "normal", 20, GUIDANCE),
        Regime("euler_ancestral", "normal", 20, GUIDANCE),
        Regime("dpmpp_2m", "karras", 20, 5.0),
    ),
    # ComfyUI's "simple" schedule: its "normal" one spends the last step of a flow model on a noise
    # level of a thousandth.
    "flux": (
        Regime("euler", "simple", 8),
        Regime("euler", "simple", 8, GUIDANCE),
        Regime("euler", "simple", 8, 5.0),
    ),
    "wan": (FOUR_STEPS, Regime("euler", "simple", 8), Regime("euler", "simple", 8, 5.0)),
    "flux-4-steps": (FOUR_STEPS,),
}
"""For each model, these regimes are worth measuring; the first is the default."""


def parse(name: str) -> Regime:
    """The regime with this name. Raises ValueError where a part of it is not known."""
    sampler, scheduler, steps, guidance = name.split("-")
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler is {sampler!r}, expected one of {SAMPLERS}")
    if scheduler not in SCHEDULERS:
        raise ValueError(f"scheduler is {scheduler!r}, expected one of {SCHEDULERS}")
    return Regime(sampler, scheduler, int(steps), float(guidance.removeprefix("cfg")))
