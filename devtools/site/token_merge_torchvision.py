"""Declares two operators just before torchvision is imported; a .pth file loads this module.

torchvision's compiled library links CUDA, so beside a torch without CUDA it does not load, and the
import stops at ``register_fake`` for operators that nobody declared. torch itself is not imported
earlier than torchvision asks for it: ComfyUI warns where it is.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

OPERATORS = ("torchvision::nms", "torchvision::qnms")
SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


class _DeclareOperators(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            for operator in OPERATORS:
                torch.library.define(operator, SCHEMA)


sys.meta_path.insert(0, _DeclareOperators())
