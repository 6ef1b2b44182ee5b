"""Small diffusion models that were trained here: how they are built, loaded and prompted."""
