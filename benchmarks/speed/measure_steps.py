"""Steps of ComfyUI's UNets in a row, as a sampler makes them.

A single call begins on a device that waits. In a row, the processor starts the kernels of the next
step while a GPU still computes, unless something has to be read from the GPU first.
"""

from __future__ import annotations

from collections.abc import Sequence

from comfy.model_patcher import ModelPatcher

from . import variants
from .environment import Environment
from .model_runs import begin, with_peak_noted
from .sampling import Request, Timing, run_in_a_row
from .session import Runner, Session
from .unets import UNETS
from .variants import Variant

STEPS = 8


def measure(
    session: Session, name: str, sides: Sequence[int], environment: Environment, rounds: int
) -> None:
    """Plain, limits, ours and the peers on the UNet ``name``, one case per size."""
    unet = UNETS[name]
    model = unet.build(environment)
    for side in sides:
        request = unet.request(side, environment)
        note = f"seconds of one of {STEPS} steps in a row"
        case = unet.case("steps", request, environment, note)
        chosen = variants.list_variants(unet.finest, 1)
        session.measure(case, [_runner(model, each, request) for each in chosen], rounds)


def _runner(model: ModelPatcher, variant: Variant, request: Request) -> Runner:
    patched = variant.patch(model)

    def again(number: int) -> Timing:
        return run_in_a_row(patched, request, STEPS)

    return with_peak_noted(model, begin(variant), again, again)
