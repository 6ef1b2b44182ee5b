"""What other nodes put in place of ComfyUI's attention, told apart.

A *backend* computes attention as it is asked. An *algorithm* changes what attention is, as sparse
attention does. What is in no table may be either, and is treated as an algorithm.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

import torch
import torch.nn.functional as F
from comfy.ldm.modules import attention as comfy_attention
from comfy.model_patcher import ModelPatcher
from torch.utils.weak import WeakIdKeyDictionary

from ....tome_core.gpus import HALF
from ..run.state import ModelInputs
from .call import Attention
from .override_table import ENTRIES

logger = logging.getLogger("token_merge")

OVERRIDE_KEY = "optimized_attention_override"
"""Where ComfyUI looks in transformer_options for another attention function."""


@dataclass(frozen=True)
class Override:
    """The attention that another node put in place of ComfyUI's.

    Args:
        function: is given ComfyUI's function, and then the arguments of the call.
        name: as users know it.
        like: name of the attention function of ComfyUI that takes the same arguments; empty where
            it is not known to compute attention as it is asked.
    """

    function: Attention
    name: str
    like: str = ""

    @property
    def is_backend(self) -> bool:
        return bool(self.like)


MOST_ERROR = 0.25
"""Of a backend on random tensors, relative to the output. Kernels of 4 bits reach about 0.1; what
is not attention is off by about 1."""


def find_override(inputs: ModelInputs) -> Override | None:
    """The override of the model call, as far as it is known; None where there is none."""
    function = inputs.options.get(OVERRIDE_KEY)
    if function is None:
        return None
    dtype = inputs.base_model.get_dtype_inference()
    return identify(function, inputs.latent.device, dtype if dtype in HALF else torch.float32)


def identify(function: Attention, device: torch.device, dtype: torch.dtype) -> Override:
    """What is known of an override.

    device, dtype: of the attention calls; a backend is tried once with such tensors.
    """
    found = _read_setter(function) or _look_up(function)
    if found is None:
        return Override(function, _name_unknown(function))
    if found.is_backend and not _computes_attention(function, device, dtype, found.name):
        return replace(found, like="")
    return found


def _read_setter(function: Attention) -> Override | None:
    """An override that ComfyUI's ``set_model_optimized_attention`` made, from version 0.32 on."""
    code = getattr(function, "__code__", None)
    setter = getattr(ModelPatcher, "set_model_optimized_attention", None)
    if code is None or setter is None or code not in _list_codes(setter.__code__):
        return None
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=False))
    cell = cells.get("optimized_attention")
    chosen = cell.cell_contents if cell else function
    if getattr(chosen, "__module__", "") == comfy_attention.__name__:
        return Override(function, "Model Attention Backend", chosen.__name__)
    return Override(function, _name_unknown(chosen))


def _list_codes(code: CodeType) -> list[CodeType]:
    """The code of each function that a function defines."""
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _look_up(function: Attention) -> Override | None:
    module, qualname = _read_names(function)
    # ComfyUI names its extra nodes by their path: /.../comfy_extras/nodes_sparse_attention.
    file = re.split(r"[./\\]", module)[-1]
    for entry in ENTRIES:
        if (entry.module, entry.qualname) == (file, qualname):
            return Override(function, entry.name, entry.like)
    return None


def _read_names(function: Attention) -> tuple[str, str]:
    """The module and the qualified name of a function, or of the class of a callable object."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return named.__module__ or "", named.__qualname__


def _name_unknown(function: Attention) -> str:
    return find_pack(_read_names(function)[0]) or "another node"


def find_pack(module: str) -> str:
    """The folder of the node pack that a module belongs to, empty where it is in none.

    module: its name; ComfyUI gives a pack's modules the path of its folder.
    """
    pack = re.search(r"custom_nodes[./\\]([^./\\]+)", module)
    return pack[1] if pack else ""


_tried = WeakIdKeyDictionary()
"""By override: whether it computes attention on a device in a type."""


def _computes_attention(
    function: Attention, device: torch.device, dtype: torch.dtype, name: str
) -> bool:
    """Tried once. Where it does not, the log says so: what is known of it is out of date."""
    tried: dict[Any, bool] = _tried.setdefault(function, {})
    if (device, dtype) not in tried:
        reason = _explain_wrong(function, device, dtype)
        tried[device, dtype] = not reason
        if reason:
            logger.error("Token Merge: %s is treated as unknown, since it %s.", name, reason)
    return tried[device, dtype]


@torch.inference_mode()
def _explain_wrong(function: Attention, device: torch.device, dtype: torch.dtype) -> str:
    """Why the outputs for random tensors are not attention, empty where they are."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(3, 1, 2, 128, 64, generator=generator).to(dtype)
    exact = F.scaled_dot_product_attention(*inputs.double())
    try:
        out = function(
            comfy_attention.optimized_attention,
            *inputs.to(device),
            2,
            skip_reshape=True,
            skip_output_reshape=True,
            transformer_options={},
            _inside_attn_wrapper=True,
        )
    except Exception as error:
        return f"failed on random tensors ({(str(error).strip() or repr(error))[:100]})"
    if out.shape != exact.shape:
        return f"gave an output of shape {tuple(out.shape)} for {tuple(exact.shape)}"
    off = float((out.cpu().double() - exact).norm() / exact.norm())
    return "" if off <= MOST_ERROR else f"was off by {off:.0%} on random tensors"
