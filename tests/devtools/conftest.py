"""Makes ``devtools`` importable."""

from __future__ import annotations

import sys
from pathlib import Path

# At the end: our folder ``nodes`` must not be found before ComfyUI's module of that name.
sys.path.append(str(Path(__file__).parents[2]))
