"""How much of the picture stays: a small diffusion model trained here, and what it measures."""
