"""Diffusion transformers: Flux, Qwen-Image, Wan and the other families."""
