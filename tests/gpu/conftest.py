"""Left out where PyTorch finds no GPU of NVIDIA's."""

from __future__ import annotations

import pytest
import torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available() and not torch.version.hip:
        return
    for item in items:
        if "tests/gpu/" in item.path.as_posix():
            item.add_marker(pytest.mark.skip(reason="no GPU here"))
