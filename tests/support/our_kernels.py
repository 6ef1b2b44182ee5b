"""Our own kernels where there is no GPU: a processor takes them, Triton's interpreter computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from token_merge.nodes.kernels import kernel_table
from token_merge.tome_core.faster_forms import FORMS


def take_here(
    monkeypatch: pytest.MonkeyPatch, *operators: str, single_precision: bool = False
) -> list[str]:
    """Have a processor take the kernels of these operators, and nothing but tensors decide.

    single_precision: all tensors are taken, those of a whole model in single precision too.

    Returns the list to which each call of a kernel will add the name of its operator.
    """
    pytest.importorskip("triton")
    computed: list[str] = []
    monkeypatch.setattr(kernel_table, "why_unusable", lambda *_: "")
    for operator in operators:
        form = FORMS[operator]

        def compute(*given: Any, operator: str = operator, form: Any = form) -> Any:
            computed.append(operator)
            return form.compute(*given)

        takes = (lambda *_: True) if single_precision else form.takes
        here = replace(
            form, compute=compute, takes=takes, why_unavailable=lambda *_: "", device_type="cpu"
        )
        monkeypatch.setitem(FORMS, operator, here)
    return computed
