"""Measures token reduction on ComfyUI's own models, in three rooms.

speed: time and memory beside the unpatched model, the peers and the limit of each setting, on
random weights.
quality: how much of a picture stays. trained: the small models that quality is measured with, and
their prompts. What several rooms need lies here, beside this file.

Imports point one way: quality -> trained, speed -> here. No room but quality knows another one.
``trained`` needs ComfyUI but not the pack, so that ComfyUI's own process can import it too.

Runs as ``python -m devtools bench`` and ``python -m devtools quality``; on a machine without the
sandbox, as ``python -m benchmarks`` with ``COMFYUI_PATH`` set.
"""
