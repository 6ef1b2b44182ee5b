"""The nodes on a model that ComfyUI's TorchCompileModel compiled, and the same model without."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from comfy.model_patcher import ModelPatcher
from comfy_extras.nodes_torch_compile import TorchCompileModel

from . import variants
from .diffusion_transformers import Clip
from .environment import Environment
from .model_runs import make_runner
from .results import Case
from .sampling import Request, Timing, sample
from .session import Runner, Session
from .unets import UNETS
from .variants import Variant
from .windows import WINDOWS_2, WINDOWS_MERGE, with_windows

WINDOWS = (WINDOWS_2, WINDOWS_MERGE)
"""What both nodes do by default on transformers."""

MOST_DIFFERENCE = 0.25
"""Of compiled to uncompiled, as a share of what the node changes. Compiled kernels round
otherwise, which may tip the choice of a few tokens; a decision that froze changes as much as the
node itself.
"""

MOST_ROUNDING = 1.5
"""A model with our nodes may differ by this many times plain's own difference more: in bfloat16
that is several times what the node changes."""


def backend() -> str:
    """Inductor where its code can be built, else the backend that traces and runs uncompiled."""
    compilers = ("g++", "clang++", "cl")
    return "inductor" if any(map(shutil.which, compilers)) else "eager"


def measure_unet(
    session: Session,
    name: str,
    side: int,
    environment: Environment,
    *,
    rounds: int,
    compiler: str | None = None,
    cases: slice = slice(None),
) -> None:
    """Plain and both nodes on a UNet; see ``_measure``.

    cases: which of them; the first is that of plain alone.
    """
    unet = UNETS[name]
    model = unet.build(environment)
    request = unet.request(side, environment)
    plain, *others = variants.list_variants(unet.finest, most_tier=1)
    chosen = [plain, *(variant for variant in others if variant.kind == "ours")]
    case = unet.case("compile", request, environment)
    _measure(session, case, model, request, chosen[cases], rounds, compiler or backend())


def measure_transformer(
    session: Session,
    clip: Clip,
    environment: Environment,
    *,
    rounds: int,
    compiler: str | None = None,
    cases: slice = slice(None),
) -> None:
    """Plain and both nodes with local windows on a few blocks of a transformer."""
    model = clip.transformer.build(environment)
    request = clip.request(model.model.model_config.unet_config)
    chosen = [
        variants.PLAIN,
        *(Variant("ours", "ours", partial(with_windows, setting=each), each) for each in WINDOWS),
    ]
    case = Case(
        part="compile",
        model=clip.transformer.name_in(environment),
        height=clip.height,
        width=clip.width,
        rows=1,
        dtype=str(clip.transformer.dtype_in(environment)).removeprefix("torch."),
        note="",
        frames=clip.frames,
    )
    _measure(session, case, model, request, chosen[cases], rounds, compiler or backend())


def _measure(
    session: Session,
    of_model: Case,
    model: ModelPatcher,
    request: Request,
    chosen: Sequence[Variant],
    rounds: int,
    compiler: str,
) -> None:
    """Plain and both nodes, compiled and not; one case per node, plain beside it in each.

    A case starts with nothing compiled: TorchCompileModel tells Dynamo not to look at the
    options a model is called with, so what was compiled with other patches would be taken.
    """
    torch._dynamo.reset()
    rounding = MOST_ROUNDING * max(_compare(model, variants.PLAIN, request, compiler))
    for variant in chosen:
        torch._dynamo.reset()
        label = variant.setting.name if variant.setting else variant.name
        note = f"compiled as by ComfyUI's TorchCompileModel, backend {compiler}"
        case = replace(of_model, model=f"{of_model.model}, {label}", note=note)
        eager = [
            make_runner(model, one, request, hooks=False)
            for one in dict.fromkeys((variants.PLAIN, variant))
        ]
        # Plain is not allowed its own difference: then nothing could fail.
        allowed = 0.0 if variant.kind == "plain" else rounding
        compiled = _compiled(model, variant, request, compiler, allowed)
        session.measure(case, [*eager, compiled], rounds)


def _compiled(
    model: ModelPatcher, variant: Variant, request: Request, compiler: str, allowed: float
) -> Runner:
    """The variant on a compiled model; fails where it does not do what it does uncompiled.

    allowed: how much more it may differ, in the mean.
    """
    patch = partial(_compile, variant, compiler)
    compiled = Variant(f"{variant.name}, compiled", variant.kind, patch, variant.setting)
    # Plain is what the others are compared with; only one row may be of that kind.
    if variant.kind == "plain":
        compiled = Variant(compiled.name, "peer", patch)
    timed = make_runner(model, compiled, request, hooks=False)

    def inspect() -> Timing:
        timing = timed.inspect()
        for first, difference in enumerate(_compare(model, variant, request, compiler)):
            without = sample(model, request, first)
            is_plain = variant.kind == "plain"
            change = without if is_plain else sample(variant.patch(model), request, first) - without
            if not difference < MOST_DIFFERENCE * change.abs().mean() + allowed:
                raise RuntimeError(f"differs from uncompiled by {difference:.3g} in the mean")
        return timing

    return Runner(timed.measured, inspect, timed.again)


def _compare(
    model: ModelPatcher, variant: Variant, request: Request, compiler: str
) -> tuple[float, float]:
    """The mean difference of compiled to uncompiled at two noise levels, as the second call must
    decide anew.
    """
    uncompiled, compiled = variant.patch(model), _compile(variant, compiler, model)
    first, second = (
        (sample(compiled, request, number) - sample(uncompiled, request, number)).abs().mean()
        for number in (0, 1)
    )
    return float(first), float(second)


def _compile(variant: Variant, compiler: str, model: ModelPatcher) -> ModelPatcher:
    """What the variant makes of the model, compiled."""
    patched = variant.patch(model)
    if compiler == "inductor":
        compiled: ModelPatcher = TorchCompileModel.execute(patched, compiler)[0]
        return compiled
    return _with_backend(patched, compiler)


def _with_backend(model: ModelPatcher, compiler: str) -> ModelPatcher:
    """As TorchCompileModel, with a backend that its input does not offer."""
    from comfy_api.torch_helpers import set_torch_compile_wrapper

    clone = model.clone()
    set_torch_compile_wrapper(model=clone, backend=compiler)
    return clone
