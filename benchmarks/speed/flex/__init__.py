"""A candidate: local windows by ``flex_attention``, one kernel for sparse blocks.

It does what ``tome_core/window_attention.py`` does, and is measured beside it.
"""
