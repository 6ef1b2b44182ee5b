"""Makes ComfyUI and the pack importable in this process, before anything imports them."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from pathlib import Path

from . import stand_ins

ROOT = Path(__file__).absolute().parent.parent
PACK = "token_merge"


def load(device: str) -> None:
    """Import the pack as the package ``token_merge``, and choose ComfyUI's attention.

    The unpatched model has to be ComfyUI's fastest: with pytorch attention, which it takes on GPUs
    by itself and on a CPU only when told.
    Raises RuntimeError where ``COMFYUI_PATH`` is not set.
    """
    if PACK in sys.modules:
        return
    comfyui = os.environ.get("COMFYUI_PATH")
    if not comfyui:
        raise RuntimeError("COMFYUI_PATH is not set: run `python -m devtools bench`")
    # First, so that ComfyUI finds its own module `nodes` and not the pack's folder.
    sys.path.insert(0, comfyui)
    stand_ins.install()
    from comfy.cli_args import args

    args.cpu = device == "cpu"
    args.use_pytorch_cross_attention = True
    logging.getLogger().setLevel(logging.WARNING)
    spec = importlib.util.spec_from_file_location(PACK, ROOT / "__init__.py")
    assert spec and spec.loader
    pack = importlib.util.module_from_spec(spec)
    sys.modules[PACK] = pack
    spec.loader.exec_module(pack)
    # The pack reports on every run it takes part in; here those are hundreds.
    logging.getLogger(PACK).setLevel(logging.ERROR)
