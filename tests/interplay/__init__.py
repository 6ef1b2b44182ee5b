"""Our nodes beside other nodes of ComfyUI: each of our modes with each of them, on each kind of
model.
"""
