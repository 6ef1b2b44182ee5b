"""Whole calls as CUDA graphs: what a GPU takes where it never waits for the processor.

Without the peers, whose code was not written to be captured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from comfy.model_patcher import ModelPatcher

from . import measure_transformer, measure_unet, variants
from .diffusion_transformers import Clip
from .environment import Environment
from .measure_unet import Picture
from .model_runs import begin
from .sampling import Request, Timing, run, run_replayed
from .session import Runner, Session
from .variants import Variant

REPLAYS = 10
NOTE = "replayed CUDA graphs"


def measure(
    session: Session, name: str, pictures: Sequence[Picture], environment: Environment
) -> None:
    """Plain, limits and ours on the UNet ``name``, one case per picture."""
    measure_unet.measure(
        session,
        name,
        pictures,
        environment,
        part="graph",
        note=NOTE,
        choose=lambda finest, tier: _without_peers(variants.list_variants(finest, tier)),
        make=_make_runner,
    )


def measure_blocks(session: Session, clip: Clip, environment: Environment, rounds: int) -> None:
    """The same on a few blocks of a transformer."""
    model = clip.transformer.build(environment)
    request = clip.request(model.model.model_config.unet_config)
    name = clip.transformer.name_in(environment)
    case = measure_transformer.make_case("graph", name, clip, environment)
    case.note += f"; {NOTE}"
    chosen = _without_peers(measure_transformer.list_variants(clip))
    session.measure(case, [_make_runner(model, each, request) for each in chosen], rounds)


def _without_peers(listed: Iterable[Variant]) -> list[Variant]:
    return [each for each in listed if each.kind != "peer"]


def _make_runner(model: ModelPatcher, variant: Variant, request: Request) -> Runner:
    patched = variant.patch(model)
    replays = REPLAYS if model.load_device.type == "cuda" else 1

    def inspect() -> Timing:
        """As every run: it compiles kernels, which a capture must not."""
        return run(patched, request, hooks=False)

    def again(number: int) -> Timing:
        return run_replayed(patched, request, first=number, replays=replays)

    return Runner(begin(variant), inspect, again)
