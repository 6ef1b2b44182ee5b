"""Token reduction in diffusion transformers: Flux, Qwen-Image, Wan and the other families."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from comfy.model_patcher import ModelPatcher

from ....tome_core.plan import Skipped
from ....tome_core.settings import Settings
from ..attention_call import OVERRIDE_KEY
from ..model_call import ModelCall, ModelInputs, add_call
from ..settings_stack import SettingsStack
from .attention import TransformerCall, attend
from .families import Family
from .layout import read_layout


@dataclass(frozen=True)
class Transformer:
    """family: how the model lays out its sequences."""

    family: Family

    resolutions = (1,)
    """All blocks have the same grid."""

    def check(self, settings: Settings) -> tuple[str, ...]:
        name = self.family.name
        if settings.mixes_keys:
            raise ValueError(
                f"matching is 'toma', expected 'local', 'global', 'k-th' or 'random' with "
                f"{name}: its keys carry positions, which weighted sums would blur"
            )
        return tuple(f"{each} acts on UNets only, not on {name}" for each in settings.unet_inputs)

    def patch(self, model: ModelPatcher, stack: SettingsStack) -> None:
        """Nothing: attention is overridden call by call."""

    @contextmanager
    def reduce(self, call: ModelCall, inputs: ModelInputs) -> Iterator[dict[str, Any]]:
        family, model = self.family, inputs.base_model.diffusion_model
        layout = read_layout(family, model, inputs.latent, inputs.prompt, inputs.conditioning)
        if isinstance(layout, Skipped):
            call.run.report.notes.add(f"all layers skipped: {layout.reason}")
            yield inputs.options
            return
        earlier = inputs.options.get(OVERRIDE_KEY)
        transformer_call = TransformerCall(
            model=call,
            layout=layout,
            first_single=family.find_first_block(model, "single"),
            total_blocks=family.count_blocks(model),
            earlier=earlier,
            whole=call.find_whole(inputs.latent.device, earlier is None, layout),
        )
        # In every step, active or not: a compiled model keeps what it saw first.
        yield {**add_call(inputs.options, transformer_call), OVERRIDE_KEY: attend}
