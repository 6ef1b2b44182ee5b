"""What runs on a GPU: the kernels of our own, one file for each operator of ``tome_core``.

``kernel_table`` says which tensors each of them takes.
"""

from .kernel_table import register_kernels
from .usable import PREPARING

__all__ = ["PREPARING", "register_kernels"]
