"""What ComfyUI reads from checkpoints of the families that draw videos, made small."""

from __future__ import annotations

from typing import Any

WAN: dict[str, Any] = {
    "image_model": "wan2.1",
    "model_type": "t2v",
    "patch_size": (1, 2, 2),
    "in_dim": 16,
    "out_dim": 16,
    "dim": 64,
    "ffn_dim": 128,
    "freq_dim": 32,
    "text_dim": 24,
    "num_heads": 2,
    "num_layers": 3,
    "qk_norm": True,
    "cross_attn_norm": True,
}
WAN_CAMERA: dict[str, Any] = {
    **WAN,
    "model_type": "camera",
    "in_dim": 32,
    "in_dim_control_adapter": 3,
}
WAN_HUMO: dict[str, Any] = {**WAN, "model_type": "humo"}
WAN_S2V: dict[str, Any] = {
    **WAN,
    "model_type": "s2v",
    "audio_dim": 16,
    "num_audio_token": 4,
    "audio_inject_layers": [0, 2],
}
WAN_ANIMATE: dict[str, Any] = {
    **WAN,
    "model_type": "animate",
    "in_dim": 36,
    "num_layers": 5,  # each fifth has an adapter for the face
}
WAN_SCAIL: dict[str, Any] = {**WAN, "model_type": "scail", "in_dim": 20}
WAN_DANCER: dict[str, Any] = {
    **WAN,
    "model_type": "wandancer",
    "in_dim": 36,
    "audio_inject_layers": [0, 2],
    "music_dim": 16,
    "music_heads": 2,
    "music_feature_dim": 8,
    "music_latent_dim": 16,
}
HUNYUAN_VIDEO: dict[str, Any] = {
    "image_model": "hunyuan_video",
    "in_channels": 16,
    "out_channels": 16,
    "vec_in_dim": 16,
    "context_in_dim": 24,
    "hidden_size": 64,
    "mlp_ratio": 2.0,
    "num_heads": 2,
    "depth": 2,
    "depth_single_blocks": 2,
    "axes_dim": [8, 12, 12],
    "theta": 256,
    "patch_size": [1, 2, 2],
    "qkv_bias": True,
    "guidance_embed": True,
    "byt5": False,
    "meanflow": False,
    "use_cond_type_embedding": False,
    "vision_in_dim": None,
    "meanflow_sum": False,
}
HUNYUAN_VIDEO_15: dict[str, Any] = {
    **HUNYUAN_VIDEO,
    "in_channels": 65,
    "out_channels": 32,
    "vec_in_dim": None,
    "patch_size": [1, 1, 1],
    "guidance_embed": False,
    "byt5": True,
    "use_cond_type_embedding": True,
    "vision_in_dim": 16,
    "meanflow_sum": True,
}
LTXV: dict[str, Any] = {
    "image_model": "ltxv",
    "in_channels": 128,
    "cross_attention_dim": 64,
    "attention_head_dim": 32,
    "num_attention_heads": 2,
    "caption_channels": 24,
    "num_layers": 3,
}
LTX_2: dict[str, Any] = {
    **LTXV,
    "image_model": "ltxav",
    "audio_cross_attention_dim": 32,
    "audio_attention_head_dim": 16,
    "audio_num_attention_heads": 2,
    "connector_attention_head_dim": 12,
    "connector_num_attention_heads": 2,
}
LTX_23: dict[str, Any] = {
    **LTX_2,
    "cross_attention_adaln": True,
    "apply_gated_attention": True,
    "caption_proj_before_connector": True,
}
COSMOS: dict[str, Any] = {
    "image_model": "cosmos",
    "max_img_h": 64,
    "max_img_w": 64,
    "max_frames": 16,
    "in_channels": 16,
    "out_channels": 16,
    "patch_spatial": 2,
    "patch_temporal": 1,
    "model_channels": 64,
    "num_blocks": 3,
    "num_heads": 2,
    "mlp_ratio": 2.0,
    "crossattn_emb_channels": 24,
    "concat_padding_mask": True,
    "pos_emb_cls": "rope3d",
    "pos_emb_interpolation": "crop",
    "use_adaln_lora": True,
    "adaln_lora_dim": 16,
}
COSMOS_VIDEO: dict[str, Any] = {
    **COSMOS,
    "block_config": "FA-CA-MLP",
    "pos_emb_learnable": False,
    "block_x_format": "THWBD",
    "affline_emb_norm": True,
    "extra_per_block_abs_pos_emb": True,
    "extra_per_block_abs_pos_emb_type": "learnable",
}
PREDICT2: dict[str, Any] = {
    **COSMOS,
    "image_model": "cosmos_predict2",
    "pos_emb_learnable": True,
    "min_fps": 1,
    "max_fps": 30,
    "rope_enable_fps_modulation": False,
}
MOCHI: dict[str, Any] = {
    "image_model": "mochi_preview",
    "patch_size": 2,
    "in_channels": 12,
    "hidden_size_x": 64,
    "hidden_size_y": 32,
    "depth": 3,
    "num_heads": 2,
    "mlp_ratio_x": 192.0,  # ComfyUI's block insists on 12288 hidden features
    "mlp_ratio_y": 2.0,
    "use_t5": True,
    "t5_feat_dim": 24,
    "t5_token_length": 16,
    "learn_sigma": False,
    "timestep_scale": 1000.0,
    "posenc_preserve_area": True,
    "attend_to_padding": False,
    "qk_norm": True,
    "qkv_bias": False,
    "out_bias": True,
    "attn_drop": 0.0,
}
COGVIDEO: dict[str, Any] = {
    "image_model": "cogvideox",
    "num_attention_heads": 2,
    "attention_head_dim": 32,
    "time_embed_dim": 32,
    "num_layers": 3,
    "in_channels": 16,
    "out_channels": 16,
    "patch_size": 2,
    "text_embed_dim": 24,
    "use_rotary_positional_embeddings": True,
}
KANDINSKY: dict[str, Any] = {
    "image_model": "kandinsky5",
    "in_text_dim": 24,
    "in_text_dim2": 16,
    "time_dim": 32,
    "model_dim": 64,
    "ff_dim": 128,
    "visual_embed_dim": 132,
    "num_text_blocks": 2,
    "num_visual_blocks": 3,
    "axes_dims": (8, 12, 12),
}
MINIMAX_H3: dict[str, Any] = {
    "image_model": "minimax_h3",
    "hidden_size": 64,
    "num_layers": 3,
    "token_refiner_num_layers": 1,
    "num_attention_heads": 2,
    "attention_head_dim": 32,
    "ffn_hidden_size": 128,
    "text_dim": 24,
    "timestep_input_dim": 32,
    "time_embed_hidden_size": 32,
    "time_embed_dim": 32,
    "rope_inv_freq_len": 4,
}
