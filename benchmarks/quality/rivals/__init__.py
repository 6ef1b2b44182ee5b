"""Other ways to make the attention of transformers cheaper, as they compute it and not as fast.

Each of them computes all of an attention call in place of ComfyUI's function, and says how many
pairs of queries and keys it read.
"""

from .install import ON_FLUX, ON_WAN, put_beside_int8

__all__ = ["ON_FLUX", "ON_WAN", "put_beside_int8"]
