"""Token Merge: fewer tokens for attention, the same picture sooner."""

from .nodes import comfy_entrypoint

__all__ = ["comfy_entrypoint"]
