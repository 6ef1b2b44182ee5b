"""How many attention calls a block makes in which the picture's tokens attend to themselves.

They are counted where another node leaves blocks out of a model that does not tell which block is
running. Each function gets the model, and the kind ("double_block", "single_block") and the number
of the block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

CallCount = Callable[[nn.Module, str, int], int]


def count_one_call(model: nn.Module, kind: str, number: int) -> int:
    """All tokens together."""
    return 1


def count_with_picture_alone(model: nn.Module, kind: str, number: int) -> int:
    """Some blocks also attend among the picture's tokens without the prompt."""
    blocks: Any = model.joint_blocks
    return 2 if blocks[number].x_block.x_block_self_attn else 1
