"""Token reduction in diffusion transformers: Flux, Qwen-Image, Wan and the other families."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from comfy.model_patcher import ModelPatcher

from ....tome_core.plan import Skipped
from ....tome_core.schedule import EARLY
from ....tome_core.settings import Settings
from ..attention.overrides import OVERRIDE_KEY, find_override
from ..attention.preferred import find_preferred
from ..run.state import ModelCall, ModelInputs, add_call
from ..settings_stack import SettingsStack
from .attention import attend
from .call import TransformerCall, watch_prompt
from .families import Family
from .left_out_blocks import watch_blocks
from .sequence import read_layout


@dataclass(frozen=True)
class Transformer:
    """family: how the model lays out its sequences."""

    family: Family

    early = EARLY

    resolutions = (1,)
    """All blocks have the same grid."""

    def list_remarks(self, settings: Settings) -> tuple[str, ...]:
        name = self.family.name
        return tuple(f"{each} acts on UNets only, not on {name}" for each in settings.unet_inputs)

    def patch(self, model: ModelPatcher, stack: SettingsStack) -> None:
        """Nothing: attention is overridden call by call."""

    def reduce(self, call: ModelCall, inputs: ModelInputs) -> dict[str, Any]:
        family, model = self.family, inputs.base_model.diffusion_model
        layout = read_layout(family, model, inputs.latent, inputs.prompt, inputs.conditioning)
        if isinstance(layout, Skipped):
            call.run.report.say(None, f"all layers skipped: {layout.reason}")
            return inputs.options
        override = find_override(inputs)
        transformer_call = TransformerCall(
            model=call,
            layout=layout,
            first_single=len(getattr(model, "double_blocks", ())),
            override=override,
            count_calls=partial(family.count_calls, model),
            preferred=find_preferred(model, call.run),
            unreduced=call.find_unreduced(inputs.latent.device, override and override.name, layout),
        )
        # In every step, active or not: a compiled model keeps what it saw first.
        options = watch_prompt(add_call(inputs.options, transformer_call))
        options = options if family.tells_block else watch_blocks(options)
        return {**options, OVERRIDE_KEY: attend}
