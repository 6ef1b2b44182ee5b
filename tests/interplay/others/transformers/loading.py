"""Where a model's weights are, and how it is run."""

from __future__ import annotations

from collections.abc import Callable

import torch
from comfy.model_patcher import ModelPatcher
from comfy_extras.nodes_torch_compile import TorchCompileModel
from support.small_models import SmallModel

from ...kinds import TRANSFORMERS
from ...other import Other, run_node
from ..wrappers import compile_anew, half_loaded
from .weights import FAMILIES, load_lora, second_model


def with_loader(model: ModelPatcher, family: SmallModel) -> ModelPatcher:
    """As loaders leave it, so that ComfyUI can load it again; here it then gets other weights."""
    clone = model.clone()
    clone.cached_patcher_init = (lambda **_: second_model(family), ())
    return clone


def copy_modules(family: SmallModel) -> Callable[[ModelPatcher], ModelPatcher]:
    return lambda model: with_loader(model, family).clone(force_deepcopy=True)


def copy_for_gpu(family: SmallModel) -> Callable[[ModelPatcher], ModelPatcher]:
    return lambda model: with_loader(model, family).deepclone_multigpu(torch.device("cpu"))


OTHERS = (
    *(
        Other(name, (kind,), clone(family))
        for name, clone in (
            ("a clone with modules of its own (force_deepcopy)", copy_modules),
            ("a clone for another GPU (deepclone_multigpu)", copy_for_gpu),
        )
        for kind, family in FAMILIES.items()
    ),
    Other(
        "weights that are loaded in part (--lowvram)",
        TRANSFORMERS,
        lambda model: model.clone(),
        situation=half_loaded,
        changes_picture=False,
    ),
    *(
        Other(
            "weights that are loaded in part, with a LoRA",
            (kind,),
            load_lora(family),
            situation=half_loaded,
        )
        for kind, family in FAMILIES.items()
    ),
    Other(
        "TorchCompileModel",
        TRANSFORMERS,
        lambda model: run_node(TorchCompileModel, model, "eager"),
        situation=compile_anew,
        changes_picture=False,
        slow=True,
    ),
)
