"""Heads that are computed one at a time, as only large pictures ask for."""

from __future__ import annotations

import pytest
from token_merge.nodes.hooks.transformer import fewer_tokens


def compute_one_head_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In attention without local windows, wherever more would be held than by ComfyUI's."""
    monkeypatch.setattr(fewer_tokens, "LEAST_BYTES", 0)
    monkeypatch.setattr(fewer_tokens, "SHARE", 0)
