"""Overrides of attention by other nodes: what each is, as read in its public source.

A pack's folder has any name, so an override is known by its module and its qualified name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """An override that is known.

    Args:
        module: of the function, without the packages around it.
        qualname: of the function.
        name, like: see ``Override``.
    """

    module: str
    qualname: str
    name: str
    like: str = ""


KJNODES = "model_optimization_nodes"
SAGE, FLASH = "SageAttention (KJNodes)", "FlashAttention (KJNodes)"
SAGE_ALONE = "sageattn"
"""SageAttention without what ComfyUI does around it. The mask that some of its kernels take is
added to scores of base 2, where log s weighs too little."""

ENTRIES = (
    # ComfyUI's comfy_extras/nodes_sparse_attention.py, as of 2026-11-27.
    Entry("nodes_sparse_attention", "make_attention_override.<locals>.override",
          "Model Sparse Attention"),
    # KJNodes' nodes/model_optimization_nodes.py, as of 2026-11-27.
    *(
        Entry(KJNODES, f"{place}.<locals>.attention_override_sage", SAGE, SAGE_ALONE)
        for place in (
            "PathchSageAttentionKJ.patch",
            "CheckpointLoaderKJ.load",
            "DiffusionModelLoaderKJ.patch_and_load",
        )
    ),
    Entry(KJNODES, "PatchFlashAttentionKJ.patch.<locals>.attention_override_flash",
          FLASH, "attention_flash"),
    *(
        Entry(KJNODES, f"GGUFLoaderKJ.attention_override_{each}", name, f"attention_{each}")
        for each, name in (
            ("pytorch", "PyTorch's attention (KJNodes)"),
            ("sage", SAGE),
            ("xformers", "xFormers (KJNodes)"),
            ("flash", FLASH),
        )
    ),
    Entry(KJNODES, "NABLA_AttentionKJ.patch.<locals>.attention_override_nabla", "NABLA (KJNodes)"),
    # patch_flash_attention.py of ComfyUI-DN_PatchFlashAttention, as of 2026-11-27.
    Entry("patch_flash_attention", "PatchFlashAttentionDN.patch.<locals>.attention_override_flash",
          "FlashAttention (DN)", "attention_flash"),
)  # fmt: skip
