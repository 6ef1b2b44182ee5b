"""Makes the real ComfyUI and the pack importable, as ComfyUI itself imports them."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _put_comfyui_on_path() -> None:
    comfyui = os.environ.get("COMFYUI_PATH")
    if not comfyui:
        raise RuntimeError("COMFYUI_PATH is not set: run the tests by `python -m devtools test`")
    sys.path.insert(0, comfyui)
    from comfy.cli_args import args

    args.cpu = True


def _put_development_packages_on_path() -> None:
    """``benchmarks`` and ``devtools``; last, so that ``nodes`` remains ComfyUI's own module."""
    sys.path.append(str(ROOT))


def _import_pack() -> None:
    """As the package ``token_merge``: its folder's name need not be an identifier."""
    spec = importlib.util.spec_from_file_location("token_merge", ROOT / "__init__.py")
    assert spec and spec.loader
    pack = importlib.util.module_from_spec(spec)
    sys.modules["token_merge"] = pack
    spec.loader.exec_module(pack)


_put_comfyui_on_path()
_put_development_packages_on_path()
_import_pack()
