"""Token Merge: fewer tokens for attention, the same picture sooner."""

from .nodes import comfy_entrypoint

WEB_DIRECTORY = "web"
"""Holds the nodes' help pages; read by ComfyUI, which serves it under this folder's own name."""

__all__ = ["WEB_DIRECTORY", "comfy_entrypoint"]
