"""HiDream-O1, which reads numbers of words and pictures in place of embeddings and latents."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from comfy.model_base import BaseModel

from ..comfyui_version import known

SEEN = 4
"""The vision model sees a reference that is four times as wide as high in so many tokens."""


class HiDreamO1(known.HiDreamO1 or object):  # an older ComfyUI has none to derive from
    """Takes what the tests give to every family, and begins each run without kept keys."""

    def get_model(self, *args: Any, **kwargs: Any) -> BaseModel:
        import comfy.ldm.hidream_o1.utils as preparing
        from comfy.ldm.hidream_o1.model import TMS_TOKEN_ID

        model = super().get_model(*args, **kwargs)
        prepare = model.extra_conds

        def extra_conds(**kwargs: Any) -> Any:
            words = (kwargs["cross_attn"][..., 0] * 1000).long().abs()
            words[:, -1] = TMS_TOKEN_ID
            kwargs["text_input_ids"] = words
            if kwargs.get("reference_latents"):
                latents = kwargs["reference_latents"]
                kwargs["reference_latents"] = [each.movedim(1, -1).sigmoid() for each in latents]
            model.diffusion_model.clear_kv_cache()
            with patch.object(preparing, "CONDITION_IMAGE_SIZE", 64):
                return prepare(**kwargs)

        model.extra_conds = extra_conds
        return model
