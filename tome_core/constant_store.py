"""A store of values that hold little memory together."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, is_dataclass
from itertools import count
from threading import Lock
from typing import Any, TypeVar

from torch import Tensor

R = TypeVar("R")


@dataclass(eq=False)
class Kept:
    """A value of the store.

    storages: the bytes of each storage of the value and of its key. used: the turn of its last use.
    """

    value: Any
    storages: dict[int, int]
    used: int


@dataclass(eq=False)
class _Contents:
    """values: by their keys. holders: how many values hold a storage. bytes: of all storages."""

    values: dict[Hashable, Kept] = field(default_factory=dict)
    holders: Counter[int] = field(default_factory=Counter)
    bytes: int = 0

    def add(self, key: Hashable, kept: Kept) -> None:
        self.values[key] = kept
        for storage, size in kept.storages.items():
            self.bytes += 0 if self.holders[storage] else size
            self.holders[storage] += 1

    def remove_oldest(self, before: float) -> bool:
        """Whether there was a value that was last used before this."""
        key = min(self.values, key=lambda each: self.values[each].used)
        if self.values[key].used >= before:
            return False
        for storage, size in self.values.pop(key).storages.items():
            self.holders[storage] -= 1
            if not self.holders[storage]:
                del self.holders[storage]
                self.bytes -= size
        return True


class ConstantStore:
    """Keeps values by what they were made of. The least recently used leave first.

    What the last calls of a model used stays, however large it is: it would be made again in every
    layer. A caller can go on using a value that was removed. Several threads may use the store at
    once.

    most_bytes: of all tensors in it. most_values: many values hold no tensor. calls: so many last
    calls count; guidance calls a model twice a step, perhaps with sequences of two lengths.
    """

    def __init__(self, most_bytes: int, most_values: int, calls: int = 8) -> None:
        self.most_bytes, self.most_values = most_bytes, most_values
        self._turns = count()
        self._starts: deque[int] = deque(maxlen=calls)
        self._lock = Lock()
        self._contents = _Contents()

    @property
    def bytes(self) -> int:
        """Of all tensors in it; each storage counts once."""
        return self._contents.bytes

    def begin_call(self) -> None:
        """A model is called."""
        self._starts.append(next(self._turns))

    def find(self, key: Hashable) -> Kept | None:
        """What is kept under ``key``, without waiting for other threads."""
        kept = self._contents.values.get(key)
        if kept is not None:
            kept.used = next(self._turns)
        return kept

    def keep(self, key: Hashable, value: R) -> R:
        """``value``, or the one that another thread kept under ``key`` in the meantime."""
        storages = dict(_list_storages((key, value)))
        before = self._starts[0] if self._starts else math.inf
        with self._lock:
            contents = self._contents
            if found := contents.values.get(key):
                return found.value
            if self._starts or sum(storages.values()) <= self.most_bytes:
                contents.add(key, Kept(value, storages, next(self._turns)))
            while contents.bytes > self.most_bytes or len(contents.values) > self.most_values:
                if not contents.remove_oldest(before):
                    break
        return value

    def empty(self) -> None:
        """Keep nothing of what is here. Needs no lock: the garbage collection may call it."""
        self._contents = _Contents()


def _list_storages(value: Any) -> Iterator[tuple[int, int]]:
    """The storage of each tensor in nested tuples and dataclasses, and its bytes."""
    if isinstance(value, Tensor):
        try:
            storage = value.untyped_storage()
            yield storage._cdata, storage.nbytes()
        except NotImplementedError:  # DirectML's tensors do not show it
            yield id(value), value.numel() * value.element_size()
    elif isinstance(value, tuple):
        for each in value:
            yield from _list_storages(each)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _list_storages(tuple(vars(value).values()))
