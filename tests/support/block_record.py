"""What is made within a block of a model, and is still there when the block is done."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .other_device import OURS


class BlockRecord(TorchDispatchMode):
    """Watches the blocks of a model while it is entered; they may not lie in each other.

    Its ``pause`` stands in for ComfyUI's ``pause_malloc_graph``, which no version has that runs
    here: as there, a pause that is within another one would end it.

    collects: look for cycles first. Triton's interpreter leaves some, which hold what a kernel got.

    Args:
        kept: how often something outlived a block that our code made in it during a pause, by the
            line of ours that made it.
        left: the same of what was made without a pause. Nothing may be there.
    """

    def __init__(self, *blocks: nn.Module, collects: bool = False) -> None:
        super().__init__()
        self._collects = collects
        self.kept: Counter[str] = Counter()
        self.left: Counter[str] = Counter()
        self._blocks = blocks
        self._block: Any = None
        self._made: dict[int, tuple[StorageWeakRef, str, bool]] = {}
        self._paused = False

    def pause(self) -> _Pause:
        return _Pause(self)

    def __enter__(self) -> BlockRecord:
        self._hooks = [
            hook
            for block in self._blocks
            for hook in (
                block.register_forward_pre_hook(self._begin),
                block.register_forward_hook(self._end),
            )
        ]
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        place = self._find_place() if self._block else ""
        if place:
            given = _find_storages((args, kwargs))  # of which views are made
            for address, storage in _find_storages(out).items():
                if address not in given:
                    self._made[address] = StorageWeakRef(storage), place, self._paused
        return out

    def _begin(self, *_: Any) -> None:
        assert self._block is None, "a block within a block"
        self._block = sys._getframe(1)

    def _end(self, block: nn.Module, given: Any, out: Any) -> None:
        if self._collects:
            gc.collect()
        returned = _find_storages(out)
        for address, (storage, place, paused) in self._made.items():
            if not storage.expired() and address not in returned:
                (self.kept if paused else self.left)[place] += 1
        self._block = None
        self._made.clear()

    def _find_place(self) -> str:
        """The line of ours that called, empty where the block did without us."""
        frame = sys._getframe(2)
        while frame is not None and frame is not self._block:
            file = frame.f_code.co_filename
            if file.startswith(OURS):
                return f"{Path(file).name}:{frame.f_code.co_name}"
            frame = frame.f_back
        return ""


class _Pause:
    def __init__(self, record: BlockRecord) -> None:
        self._record = record

    def __enter__(self) -> None:
        assert not self._record._paused, "the inner pause would end the outer one"
        self._record._paused = True

    def __exit__(self, *error: Any) -> None:
        self._record._paused = False


def _find_storages(nested: Any) -> dict[int, torch.UntypedStorage]:
    """Of all tensors, by address."""
    tensors = (each for each in tree_leaves(nested) if isinstance(each, Tensor))
    storages = (each.untyped_storage() for each in tensors)
    return {each._cdata: each for each in storages}
