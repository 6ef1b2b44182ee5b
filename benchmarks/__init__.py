"""Measures token reduction on ComfyUI's own UNets, beside its peers and the limit of each setting.

Runs as ``python -m devtools bench``; on a machine without the sandbox, as ``python -m benchmarks``
with ``COMFYUI_PATH`` set. Imports point down: cli -> measure_* -> variants -> ours, limits, peers
-> settings; sampling -> clocks; tables and plots read results alone and need no ComfyUI.
"""
