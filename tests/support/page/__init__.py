"""ComfyUI's page in a real browser, and graphs to open in it."""
