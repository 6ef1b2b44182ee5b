"""What the published package, tomesd 0.1.3, makes at ComfyUI's hook, from our node: through a whole
UNet, sampled. Its own patch compares tokens before the norm, where no hook is.
"""

import pytest
import tomesd
import torch
from support.unet_sampling import sample
from support.unets import build_unet


def patch_as_tomesd(model, ratio):
    """Merging and unmerging of tomesd around self-attention, its randomness off."""
    unmerge = []

    def merge_tokens(n, context, value, extra_options):
        height, width = extra_options["activations_shape"][2:]
        if height != extra_options["original_shape"][2]:
            return n, context, value
        merge, undo = tomesd.merge.bipartite_soft_matching_random2d(
            n, width, height, 2, 2, int(n.shape[1] * ratio), no_rand=True
        )
        unmerge.append(undo)
        merged = merge(n)
        return merged, merged, merged

    def unmerge_tokens(n, extra_options):
        return unmerge.pop()(n) if unmerge else n

    clone = model.clone()
    clone.set_model_attn1_patch(merge_tokens)
    clone.set_model_attn1_output_patch(unmerge_tokens)
    return clone


@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("steps", [1, pytest.param(6, marks=pytest.mark.thorough)])
def test_four_inputs_make_our_node_tomesd(ratio, steps, token_merge):
    as_published = {
        "target": "queries, keys and values",
        "matching": "global",
        "random_destinations": False,
        "proportional_attention": False,
    }
    unpatched = sample(build_unet("SD15"), steps=steps)
    theirs = sample(patch_as_tomesd(build_unet("SD15"), ratio), steps=steps)
    ours = sample(token_merge(build_unet("SD15"), ratio=ratio, **as_published), steps=steps)
    assert (theirs - unpatched).norm() / unpatched.norm() > 1e-3
    assert (ours - theirs).norm() / theirs.norm() < 1e-5
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * theirs.abs().max().item())
