"""The transformer families: where each keeps the picture in its attention sequences.

Read off ComfyUI's model classes, which are named and not imported: an older ComfyUI lacks some.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from torch import nn

from .block_calls import CallCount, count_one_call, count_with_picture_alone
from .text_tokens import (
    TextCount,
    count_captions,
    count_numbered,
    count_one,
    count_packed,
    count_prompt_alone,
    count_until_longest,
    count_with_letters_and_vision,
    count_with_references,
    count_with_registers,
)


@dataclass(frozen=True)
class Family:
    """How the self-attention sequences of one model class are laid out.

    Args:
        name: the models of that class, as users know them.
        text: whether the prompt's tokens stand before or after the picture, or apart in
            cross-attention.
        patch: where the model keeps its patch size: attributes or numbers, for frames, rows and
            columns, or for the last of these.
        tells_block: the model tells which block is running.
        references: conditioning whose latents become tokens between text and picture, each with
            the module without which the model ignores it.
        references_behind: conditioning whose latents become tokens behind the picture.
        beside: conditioning with a reference whose rows prolong those of the picture.
        sizes_behind: conditioning that becomes tokens of several sizes behind the picture: for
            each size the frames of tokens, and the rows and columns of the latent in one token.
        guides: conditioning with one column for each of the last tokens of the latent that are
            guides rather than picture.
        counts_references: the model tells how many tokens its references behind the picture have.
        padding: the attribute that holds a number, where the picture's tokens are filled up to a
            multiple of it.
        count_text: how many of the sequence's tokens are the prompt's: exactly as many before the
            picture, at least as many after it.
        count_calls: how many attention calls a block makes in which the picture attends to itself.
        picture_alone: some blocks attend among the picture's tokens without the prompt.
        prompt_queries: how many of the prompt's tokens are queries too, those beside the picture;
            the others are keys alone. None: all.
        has_refiners: some blocks also attend among the references and the picture, without the
            prompt. Such sequences before the first one with the prompt are of refiners.
        prompt_tokens: lengths of prompts in cross-attention, beside that of the conditioning.
        sound: conditioning with the tokens that stand before those of the sound, which has an
            attention of its own beside the video's.
    """

    name: str
    text: Literal["before", "after", "apart"]
    patch: tuple[str | int, ...] = ("patch_size",)
    tells_block: bool = False
    references: tuple[tuple[str, str], ...] = ()
    references_behind: tuple[str, ...] = ()
    beside: str | None = None
    sizes_behind: tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...] = ()
    guides: str | None = None
    counts_references: bool = False
    padding: str | None = None
    count_text: TextCount = count_prompt_alone
    count_calls: CallCount = count_one_call
    picture_alone: bool = False
    prompt_queries: int | None = None
    has_refiners: bool = False
    prompt_tokens: tuple[int, ...] = ()
    sound: str | None = None

    def find_patch(self, model: nn.Module) -> tuple[int, int, int]:
        """Frames, rows and columns of the latent that one token holds."""
        sides: list[int] = []
        for name in self.patch:
            size: Any = getattr(model, name) if isinstance(name, str) else name
            sides += [1] if size is None else [size] if isinstance(size, int) else size
        if len(sides) == 1:
            sides *= 2
        frames, rows, columns = [1] * (3 - len(sides)) + sides
        return frames, rows, columns


CLIP_VISION = (257, 514)
"""The pictures that Wan reads as it reads a prompt have so many tokens: one picture, or the first
and the last."""

_wan = partial(Family, text="apart", tells_block=True, prompt_tokens=CLIP_VISION)

FAMILIES: dict[str, Family] = {
    "comfy.ldm.flux.model.Flux": Family(
        "Flux 1, Flux 2, LongCat-Image",
        "before",
        tells_block=True,
        references_behind=("ref_latents",),
        counts_references=True,
    ),
    "comfy.ldm.chroma.model.Chroma": Family("Chroma", "before", tells_block=True),
    "comfy.ldm.chroma_radiance.model.ChromaRadiance": Family(
        "Chroma Radiance", "before", tells_block=True
    ),
    "comfy.ldm.modules.diffusionmodules.mmdit.OpenAISignatureMMDITWrapper": Family(
        # SD 3.5 Medium also attends among the picture's tokens alone.
        "Stable Diffusion 3 and 3.5",
        "before",
        count_calls=count_with_picture_alone,
        picture_alone=True,
    ),
    "comfy.ldm.qwen_image.model.QwenImageTransformer2DModel": Family(
        "Qwen-Image, Qwen-Image-Edit",
        "before",
        tells_block=True,
        references_behind=("ref_latents",),
        counts_references=True,
    ),
    "comfy.ldm.qwen_image21.model.QwenImage21Transformer2DModel": Family(
        # The prompt and each reference attend by themselves, and to what stands before them.
        "Qwen-Image 2.1",
        "before",
        patch=(1, 1),
        tells_block=True,
        count_text=count_with_references,
        prompt_queries=0,
    ),
    "comfy.ldm.lumina.model.NextDiT": Family(
        # Ming-Image appends the frames of its references to the picture, and then pads.
        "Lumina 2, Z-Image",
        "before",
        tells_block=True,
        references_behind=("ref_frames",),
        padding="pad_tokens_multiple",
        count_text=count_captions,
    ),
    "comfy.ldm.lumina.model.NextDiTPixelSpace": Family(
        "Z-Image in pixel space",
        "before",
        tells_block=True,
        padding="pad_tokens_multiple",
        count_text=count_captions,
    ),
    "comfy.ldm.wan.model.WanModel": _wan(
        "Wan 2.1 and 2.2",
        references=(("reference_latent", "ref_conv"),),
        references_behind=("time_dim_concat", "context_latents"),
    ),
    "comfy.ldm.wan.model.VaceWanModel": Family("Wan VACE", "apart", tells_block=True),
    "comfy.ldm.wan.model.CameraWanModel": _wan("Wan Camera"),
    "comfy.ldm.wan.model.HumoWanModel": Family(
        # Each frame reads the 16 tokens of its sound.
        "Wan HuMo",
        "apart",
        tells_block=True,
        references_behind=("reference_latent",),
        prompt_tokens=(16,),
    ),
    "comfy.ldm.wan.model.WanModel_S2V": Family(
        # Of the motion before the video, the older a frame is the larger are its tokens.
        "Wan S2V",
        "apart",
        tells_block=True,
        references_behind=("reference_latent",),
        sizes_behind=(("reference_motion", ((1, 2, 2), (1, 4, 4), (4, 8, 8))),),
    ),
    "comfy.ldm.wan.model.SCAILWanModel": _wan(
        "Wan SCAIL",
        references=(("reference_latent", "patch_embedding"),),
        references_behind=("pose_latents",),
    ),
    "comfy.ldm.wan.model.SCAIL2WanModel": _wan(
        "Wan SCAIL 2",
        references=(("reference_latent", "patch_embedding"),),
        references_behind=("pose_latents",),
    ),
    "comfy.ldm.wan.model_animate.AnimateWanModel": _wan("Wan Animate"),
    "comfy.ldm.wan.model_wandancer.WanDancerModel": _wan("WanDancer"),
    "comfy.ldm.hunyuan_video.model.HunyuanVideo": Family(
        "HunyuanVideo, HunyuanImage 2.1",
        "before",
        tells_block=True,
        references=(("ref_latent", "img_in"),),
        count_text=count_with_letters_and_vision,
    ),
    "comfy.ldm.lightricks.model.LTXVModel": Family(
        "LTX-Video", "apart", patch=(1, 1), guides="keyframe_idxs"
    ),
    "comfy.ldm.lightricks.av_model.LTXAVModel": Family(
        "LTX-2",
        "apart",
        patch=(1, 1),
        guides="keyframe_idxs",
        sound="ref_audio",
    ),
    "comfy.ldm.hidream.model.HiDreamImageTransformer2DModel": Family(
        "HiDream-I1, HiDream-E1", "after", beside="image_cond"
    ),
    "comfy.ldm.hidream_o1.model.HiDreamO1Transformer": Family(
        # The prompt's tokens but the last, which holds the noise level, attend by themselves.
        "HiDream-O1",
        "before",
        tells_block=True,
        references_behind=("ref_patches",),
        count_text=count_numbered,
        prompt_queries=1,
    ),
    "comfy.ldm.omnigen.omnigen2.OmniGen2Transformer2DModel": Family(
        "OmniGen2", "before", references=(("ref_latents", "ref_image_refiner"),)
    ),
    "comfy.ldm.boogu.model.BooguTransformer2DModel": Family(
        "Boogu",
        "before",
        references=(("ref_latents", "ref_image_refiner"),),
        has_refiners=True,
    ),
    "comfy.ldm.cosmos.model.GeneralDIT": Family(
        "Cosmos", "apart", patch=("patch_temporal", "patch_spatial", "patch_spatial")
    ),
    "comfy.ldm.cosmos.predict2.MiniTrainDIT": Family(
        "Cosmos Predict2",
        "apart",
        patch=("patch_temporal", "patch_spatial", "patch_spatial"),
        tells_block=True,
    ),
    "comfy.ldm.anima.model.Anima": Family(
        "Anima",
        "apart",
        patch=("patch_temporal", "patch_spatial", "patch_spatial"),
        tells_block=True,
        prompt_tokens=(512,),
    ),
    "comfy.ldm.aura.mmdit.MMDiT": Family("AuraFlow", "before", count_text=count_with_registers),
    "comfy.ldm.genmo.joint_model.asymm_models_joint.AsymmDiTJoint": Family(
        "Mochi",
        "after",
        count_text=count_one,
    ),
    "comfy.ldm.cogvideo.model.CogVideoXTransformer3DModel": Family(
        "CogVideoX", "before", patch=("patch_size_t", "patch_size", "patch_size")
    ),
    "comfy.ldm.kandinsky5.model.Kandinsky5": Family("Kandinsky 5", "apart", tells_block=True),
    # Keyframes, references and the sound stand between the prompt and the video.
    "comfy.ldm.minimax.model.MiniMaxH3Model": Family(
        "MiniMax H3", "before", count_text=count_packed
    ),
    "comfy.ldm.krea2.model.SingleStreamDiT": Family(
        "Krea 2",
        "before",
        patch=("patch",),
        tells_block=True,
        references_behind=("ref_latents",),
        counts_references=True,
    ),
    "comfy.ldm.lens.model.LensTransformer2DModel": Family(
        "Lens", "after", patch=(1, 1), tells_block=True
    ),
    "comfy.ldm.joyimage.model.JoyImageTransformer3DModel": Family(
        "JoyImage", "after", tells_block=True
    ),
    "comfy.ldm.mage_flow.model.MageFlowTransformer2DModel": Family(
        "Mage-Flow",
        "before",
        patch=(1, 1),
        tells_block=True,
        references_behind=("ref_latents",),
        counts_references=True,
    ),
    "comfy.ldm.cascade.stage_c.StageC": Family(
        "Stable Cascade, stage C", "after", patch=(1, 1), prompt_queries=0
    ),
    "comfy.ldm.ideogram4.model.Ideogram4Transformer2DModel": Family(
        "Ideogram 4", "before", patch=(1, 1)
    ),
    # The last blocks attend among the patches of the picture, without the prompt.
    "comfy.ldm.pixeldit.model.PixDiT_T2I": Family(
        "PixelDiT", "before", count_text=count_until_longest, picture_alone=True
    ),
    "comfy.ldm.pixeldit.pid.PidNet": Family(
        "PiD", "before", count_text=count_until_longest, picture_alone=True
    ),
}
"""The key is the name of ComfyUI's model class; a class derived from one of these may differ."""

OUT_OF_REACH = (
    "its attention cannot be reached by other nodes: ComfyUI calls it without transformer_options"
)
OUT_OF_REACH_IN_PARTS = (
    "SamplerARVideo draws the video a few frames at a time, "
    "and there its attention cannot be reached by other nodes"
)
A_FRAME_AT_A_TIME = (
    "its attention is computed frame by frame, and each frame also reads one of the driving video"
)
NOT_TRIED = "ComfyUI has it in later versions than those on which these nodes were tried"
NO_PICTURE = "its tokens form no picture"
TWO_GRIDS = (
    "it attends on two grids, of 1,024 and 256 tokens at 1024 x 1024, "
    "and these nodes know one grid for each model"
)

SKIPPED_FAMILIES: dict[str, tuple[str, str]] = {
    "comfy.ldm.pixart.pixartms.PixArtMS": ("PixArt", OUT_OF_REACH),
    "comfy.ldm.hydit.models.HunYuanDiT": ("HunyuanDiT", OUT_OF_REACH),
    "comfy.ldm.ernie.model.ErnieImageModel": ("Ernie-Image", OUT_OF_REACH),
    "comfy.ldm.seedvr.model.NaDiT": ("SeedVR2", OUT_OF_REACH),
    "comfy.ldm.hunyuan3d.model.Hunyuan3Dv2": ("Hunyuan3D 2", NO_PICTURE),
    "comfy.ldm.hunyuan3dv2_1.hunyuandit.HunYuanDiTPlain": ("Hunyuan3D 2.1", NO_PICTURE),
    "comfy.ldm.ace.model.ACEStepTransformer2DModel": ("ACE-Step", NO_PICTURE),
    "comfy.ldm.ace.ace_step15.AceStepConditionGenerationModel": ("ACE-Step 1.5", NO_PICTURE),
    "comfy.ldm.audio.dit.AudioDiffusionTransformer": ("Stable Audio", NO_PICTURE),
    "comfy.ldm.wan.ar_model.CausalWanModel": ("Wan, autoregressive", OUT_OF_REACH_IN_PARTS),
    "comfy.ldm.wan.model_animate2.WanAnimate2Model": ("Wan Animate 2", A_FRAME_AT_A_TIME),
    "comfy.ldm.minimax_music.dit.MiniMaxMusic3DiT": ("MiniMax Music 3", NO_PICTURE),
    "comfy.ldm.trellis2.model.Trellis2": ("Trellis 2", NO_PICTURE),
    "comfy.ldm.yue2.model.YuE2": ("YuE 2", NO_PICTURE),
    "comfy.ldm.sensenova.model.SenseNovaU15": ("SenseNova U1.5", NOT_TRIED),
    "comfy.ldm.cascade.stage_b.StageB": ("Stable Cascade, stage B", TWO_GRIDS),
}
"""These model classes pass through unchanged. The value is the name and the reason."""
