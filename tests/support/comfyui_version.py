"""What the ComfyUI that the tests run on lacks, where it is older than the newest one."""

from __future__ import annotations

from typing import Any, NoReturn

import comfy.supported_models
import comfyui_version
import pytest

VERSION: str = comfyui_version.__version__
EARLIER_SOUND = ("0.20.1", "earlier sound in LTX-2")
"""Before this version LTX-2 knows no other sound before its own."""


class KnownModels:
    """``comfy.supported_models``, with None in place of a class that this ComfyUI lacks."""

    def __getattr__(self, name: str) -> Any:
        return getattr(comfy.supported_models, name, None)


known = KnownModels()


def needs_comfyui(version: str, what: str) -> pytest.MarkDecorator:
    """Leaves a test out on older versions. what: that they lack."""
    reason = _say_what_is_lacking(what, version)
    return pytest.mark.skipif(_is_older_than(version), reason=reason)


def needs_comfyui_before(version: str, what: str) -> pytest.MarkDecorator:
    """Leaves a test out from that version on. what: that ComfyUI refuses by itself since then."""
    reason = f"ComfyUI {VERSION} refuses {what}, with our nodes or without"
    return pytest.mark.skipif(not _is_older_than(version), reason=reason)


def leave_out_before(version: str, what: str) -> None:
    """The same within a test. version: the first of those that ``devtools matrix`` tests."""
    if _is_older_than(version):
        leave_out(what, version)


def leave_out(what: str, version: str | None) -> NoReturn:
    """End the test here. version: the first that has it, None where that is not known."""
    pytest.skip(_say_what_is_lacking(what, version))


def _say_what_is_lacking(what: str, version: str | None) -> str:
    return f"ComfyUI {VERSION} lacks {what}" + (f", which {version} has" if version else "")


def _is_older_than(version: str) -> bool:
    return _numbers(VERSION) < _numbers(version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))
