"""Steps of ComfyUI's UNets in a row, as a sampler makes them.

A single call begins on a device that waits. In a row, the processor starts the kernels of the next
step while a GPU still computes, unless something has to be read from the GPU first.
"""

from __future__ import annotations

from collections.abc import Sequence

from comfy.model_patcher import ModelPatcher

from . import measure_unet
from .environment import Environment
from .measure_unet import Picture
from .model_runs import begin, with_peak_noted
from .sampling import Request, Timing, run_in_a_row
from .session import Runner, Session
from .variants import Variant

STEPS = 8
NOTE = f"seconds of one of {STEPS} steps in a row"


def measure(
    session: Session, name: str, pictures: Sequence[Picture], environment: Environment
) -> None:
    """Plain, limits, ours and the peers on the UNet ``name``, one case per picture."""
    measure_unet.measure(
        session, name, pictures, environment, part="steps", note=NOTE, make=_make_runner
    )


def _make_runner(model: ModelPatcher, variant: Variant, request: Request) -> Runner:
    patched = variant.patch(model)

    def again(number: int) -> Timing:
        return run_in_a_row(patched, request, STEPS)

    return with_peak_noted(model, begin(variant), again, again)
