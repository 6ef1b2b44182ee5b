"""How fast: variants of one model in turn, their time, memory and token counts.

Imports point down: cli -> plan -> measure_* -> variants -> limits -> sampling. The options need
nothing but Python. Tables read results alone and need no ComfyUI.
"""
