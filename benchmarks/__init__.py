"""Measures token reduction on ComfyUI's own models, in four rooms.

speed: time and memory beside the unpatched model, the peers and the limit of each setting, on
random weights.
quality: how much of a picture stays. trained: the small models that quality is measured with, and
their prompts. training: makes such models from scenes of emoji. What several rooms need lies here,
beside this file.

Imports point one way: quality -> training -> trained, speed -> here. The last two know no room.
``trained`` needs ComfyUI but not the pack, so that ComfyUI's own process can import it too.

Runs as ``python -m devtools bench``, ``quality`` and ``train``; on a machine without the sandbox,
as ``python -m benchmarks`` with ``COMFYUI_PATH`` set.
"""
