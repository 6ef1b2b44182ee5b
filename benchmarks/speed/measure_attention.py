"""The self-attention of one transformer block, with every matching and target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import attention_stage, variants
from .environment import Environment
from .model_runs import make_runner
from .results import Case
from .sampling import Request
from .session import Session


@dataclass(frozen=True)
class AttentionLayer:
    """Self-attention on a ``side`` x ``side`` grid, as ``model`` has it at its finest."""

    model: str
    channels: int
    heads: int
    side: int
    rounds: int
    tier: int = 3


def measure(session: Session, layers: Sequence[AttentionLayer], environment: Environment) -> None:
    """One case per layer; its height and width are tokens."""
    for layer in layers:
        model, context = attention_stage.build(layer.channels, layer.heads, environment)
        request = Request(8 * layer.side, 8 * layer.side, context=context)
        case = Case(
            part="attention",
            model=f"{layer.model}'s self-attention ({layer.channels} channels)",
            height=layer.side,
            width=layer.side,
            rows=request.rows,
            dtype=environment.dtype_name,
            note="sizes in tokens",
        )
        runners = [
            make_runner(model, variant, request)
            for variant in variants.list_variants(1, layer.tier)
        ]
        session.measure(case, runners, layer.rounds)
