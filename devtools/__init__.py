"""Development tools: one command that builds its own sandbox with a real ComfyUI in it."""
