"""The one table of faster forms: which operator has one, and which tensors it takes.

An operator is the verb of a room, such as ``windows.attend``. The room has its form in PyTorch,
which runs everywhere, beside a readable reference. A kernel for a GPU is entered here by the
package that brings it, and the verb looks it up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Form:
    """A faster form of an operator.

    Args:
        compute: has the arguments of the operator and returns what it returns.
        takes: whether it takes these arguments, on a device of its type.
        why_unavailable: why it does not run on a device, empty where it does; may be asked with
            what is known of a call, too.
    """

    compute: Callable[..., Any]
    takes: Callable[..., bool]
    why_unavailable: Callable[..., str]
    device_type: str = "cuda"


FORMS: dict[str, Form] = {}
"""The key is the name of the operator."""


def find_form(operator: str, device: torch.device, *arguments: Any) -> Callable[..., Any] | None:
    """What computes an operator of these arguments faster, None where nothing does."""
    form = FORMS.get(operator)
    if form is None or device.type != form.device_type or not form.takes(*arguments):
        return None
    return form.compute


def why_unavailable(operator: str, device: torch.device, *call: Any) -> str:
    """Why an operator has no faster form on a device, empty where it has one.

    call: what is known of a call of it, as its form asks for.
    """
    form = FORMS.get(operator)
    return form.why_unavailable(device, *call) if form else "there is no GPU"
