"""What is put around a model, and what is done with all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from comfy.model_patcher import ModelPatcher
from comfy.patcher_extension import WrappersMP
from comfy_extras.nodes_torch_compile import TorchCompileModel
from torch import Tensor

from ..kinds import EVERY_KIND, KINDS, UNETS, Kind, call_larger_unet
from ..other import Other, run_node


def compute_halves(call: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Two tiles that overlap, as nodes do that save memory."""
    width = x.shape[-1]
    side = width * 5 // 8 // 2 * 2
    left, right = call(x[..., :side].contiguous()), call(x[..., -side:].contiguous())
    return torch.cat([left[..., : width // 2], right[..., side - width // 2 :]], dim=-1)


def tile(executor: Any, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return compute_halves(lambda part: executor(part, *args, **kwargs), x)


def tile_by_wrapper(kind: str) -> Callable[[ModelPatcher], ModelPatcher]:
    def put_on(model: ModelPatcher) -> ModelPatcher:
        clone = model.clone()
        clone.add_wrapper_with_key(kind, "tiles", tile)
        return clone

    return put_on


def tile_by_function(model: ModelPatcher) -> ModelPatcher:
    """As tiled diffusion nodes do, each tile with the conditioning of the whole."""

    def call(apply_model: Callable[..., Tensor], given: dict[str, Any]) -> Tensor:
        return compute_halves(
            lambda part: apply_model(part, given["timestep"], **given["c"]), given["input"]
        )

    clone = model.clone()
    clone.set_model_unet_function_wrapper(call)
    return clone


@contextmanager
def compile_anew() -> Iterator[None]:
    """TorchCompileModel drops the guards that would tell one model's patches from another's."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def with_loader(model: ModelPatcher, kind: Kind) -> ModelPatcher:
    """As loaders leave it, so that ComfyUI can load the model again; here it gets other weights,
    which tell who still calls the old modules.
    """
    clone = model.clone()
    clone.cached_patcher_init = (lambda **_: kind.make(seed=9), ())
    return clone


def copy_modules(model: ModelPatcher, kind: Kind) -> ModelPatcher:
    return with_loader(model, kind).clone(force_deepcopy=True)


def copy_for_gpu(model: ModelPatcher, kind: Kind) -> ModelPatcher:
    return with_loader(model, kind).deepclone_multigpu(torch.device("cpu"))


@contextmanager
def half_loaded() -> Iterator[None]:
    """ComfyUI keeps half of the weights where they are and casts them in each call."""
    load = ModelPatcher.load

    def load_half(self: ModelPatcher, device_to: Any = None, *args: Any, **kwargs: Any) -> None:
        load(self, device_to, lowvram_model_memory=self.model_size() // 2)
        assert self.model.model_lowvram

    with patch.object(ModelPatcher, "load", load_half):
        yield


OTHERS = (
    Other(
        "tiles, by a wrapper around the model's call",
        UNETS,
        tile_by_wrapper(WrappersMP.APPLY_MODEL),
        change=call_larger_unet,
    ),
    Other(
        "tiles, by a wrapper around the diffusion model",
        UNETS,
        tile_by_wrapper(WrappersMP.DIFFUSION_MODEL),
        change=call_larger_unet,
    ),
    Other("tiles, by a model function wrapper", UNETS, tile_by_function, change=call_larger_unet),
    Other(
        "TorchCompileModel",
        EVERY_KIND,
        lambda model: run_node(TorchCompileModel, model, "eager"),
        situation=compile_anew,
        changes_picture=False,
        slow=True,
    ),
    *(
        Other(name, (kind.name,), partial(copy, kind=kind))
        for name, copy in (
            ("a clone with modules of its own (force_deepcopy)", copy_modules),
            ("a clone for another GPU (deepclone_multigpu)", copy_for_gpu),
        )
        for kind in KINDS
    ),
    Other(
        "weights that are loaded in part (--lowvram)",
        EVERY_KIND,
        lambda model: model.clone(),
        situation=half_loaded,
        changes_picture=False,
    ),
    Other(
        "weights on another device (--novram, DynamicVRAM)",
        (),
        not_tried=dict.fromkeys(UNETS, "it needs a device beside the processor"),
    ),
)
