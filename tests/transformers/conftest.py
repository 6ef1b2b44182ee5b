"""Small real models of every family of transformers, and what reaches their attention."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
