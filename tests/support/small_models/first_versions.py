"""Which small models an older ComfyUI lacks, by name."""

from __future__ import annotations

FIRST_VERSIONS = {
    "CogVideoX": "0.24.1",
    "CogVideoX 1.5": "0.24.1",
    "ERNIE-Image": "0.20.1",
    "JoyImage": "0.30.0",
    "JoyImage with references": "0.30.0",
    "Krea 2": "0.26.0",
    "Krea 2 with references": "0.26.0",
    "Lens": "0.24.1",
    "MageFlow": "0.30.0",
    "MageFlow with references": "0.30.0",
    "SeedVR2": "0.30.0",
}
"""The first ComfyUI of those that ``devtools matrix`` tests which has the model. A model that is
not named is in all of them."""
