"""Which tokens reach the kernel in every family, against places that were found from outside."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
import torch
from support.attention_record import AttentionRecord
from support.expected import pair_calls, rows_left_by_downsampling
from support.small_models import IMAGES, UNGUIDED_VIDEOS, VIDEOS, SampleRequest, each, list_featured

REACHED = (*IMAGES, *VIDEOS, *UNGUIDED_VIDEOS)
VIDEO_FAMILIES = [family for family in list_featured(VIDEOS) if family.is_video]


def pytest_generate_tests(metafunc):
    """Sides that a factor of 2 divides are tried in the long form alone."""
    if "size" in metafunc.fixturenames:
        sizes = [(5, 7), (6, 8)] if metafunc.config.getoption("long") else [(5, 7)]
        metafunc.parametrize("size", sizes, ids=str)


@pytest.fixture(params=each(REACHED))
def family(request):
    return request.param


def watched(model, family, run):
    record = AttentionRecord()
    run.sample(record.watch(model), family)
    return list(pair_calls(record, family, run))


def assert_untouched(pair):
    assert torch.equal(pair.asked.q, pair.reached.q)
    assert torch.equal(pair.asked.k, pair.reached.k)
    assert torch.equal(pair.asked.v, pair.reached.v)


def assert_keys_are(pair, rows):
    """Exactly these rows of what the model asked for; channels behind them hold group sizes."""
    channels = pair.asked.k.shape[3]
    assert pair.reached.lengths == (pair.asked.lengths[0], len(rows))
    assert torch.equal(pair.reached.q[..., :channels], pair.asked.q)
    assert torch.equal(pair.reached.k[..., :channels], pair.asked.k[:, :, rows])
    assert torch.equal(pair.reached.v[..., :channels], pair.asked.v[:, :, rows])
    assert torch.equal(pair.reached.out[..., :channels], pair.asked.out)


@pytest.mark.parametrize("family", [*IMAGES, *VIDEOS, *each(UNGUIDED_VIDEOS)], ids=str)
def test_downsampling_drops_picture_keys_and_nothing_else(family, size, token_downsample):
    """All families without ``--all`` too: it finds what is wrong of one of them."""
    run = SampleRequest.with_tokens(family, *size, steps=1)
    seen = watched(token_downsample(family.build(), factor=2, method="nearest-exact"), family, run)
    for pair in seen:
        if pair.kinds is None:
            assert_untouched(pair)
        else:
            grid = run.token_grid(family)
            rows = rows_left_by_downsampling(pair.kinds, grid, 2)
            dropped = prod(grid) - prod(grid[:-2]) * (size[0] // 2) * (size[1] // 2)
            assert len(rows) == len(pair.kinds) - dropped
            assert_keys_are(pair, rows)
    assert any(pair.kinds for pair in seen)


@pytest.mark.parametrize("family", VIDEO_FAMILIES, ids=str)
@pytest.mark.parametrize("factor", [1, 2])
def test_temporal_factor_drops_frames(family, factor, token_downsample):
    run = SampleRequest(steps=1)
    how = {"temporal_factor": 2, "method": "nearest-exact"}
    model = token_downsample(family.build(), factor=factor, **how)
    for pair in watched(model, family, run):
        if pair.kinds:
            rows = rows_left_by_downsampling(pair.kinds, run.token_grid(family), factor, 2)
            assert pair.kinds.count("picture") - (len(pair.kinds) - len(rows)) == 48 // factor**2
            assert_keys_are(pair, rows)


@pytest.mark.parametrize("method", ["stratified", "interleaved"])
def test_drawn_keys_leave_other_tokens_as_they_are(family, size, method, token_downsample):
    run = SampleRequest.with_tokens(family, *size, steps=1)
    model = token_downsample(family.build(), factor=2, method=method, local_window="off")
    for pair in watched(model, family, run):
        if pair.kinds is None:
            assert_untouched(pair)
            continue
        grid = run.token_grid(family)
        cells = prod(grid[:-2]) * (size[0] // 2) * (size[1] // 2)
        before, picture = pair.kinds.index("picture"), pair.kinds.count("picture")
        left = len(pair.kinds) - picture + cells
        groups = min(4, len(pair.kinds) // left) if method == "interleaved" else 1
        assert len(pair.reached.q) == groups
        for group in split_groups(pair):
            assert group.k.shape[2] == left
            for name in ("k", "v"):
                asked, reached = getattr(pair.asked, name), getattr(group, name)
                assert torch.equal(reached[:, :, :before], asked[:, :, :before])
                after = asked[:, :, before + picture :]
                assert torch.equal(reached[:, :, before + cells :], after)
            chosen = slice(before, before + cells)
            places = slice(before, before + picture)
            keys = find_rows(group.k[:, :, chosen], pair.asked.k[:, :, places])
            assert len(keys.unique()) == cells
            assert torch.equal(group.v[:, :, chosen], pair.asked.v[:, :, places][:, :, keys])
        assert_every_picture_token_has_the_output_of_its_group(pair, places)


def assert_every_picture_token_has_the_output_of_its_group(pair, places):
    queries, outputs = (getattr(pair.asked, name)[0, 0, places] for name in ("q", "out"))
    answered = torch.zeros(len(queries), dtype=torch.bool)
    for group in split_groups(pair):
        is_query = (group.q[0, 0, :, None] == queries[None]).all(dim=2)  # (Q, N)
        # The last group is filled up with queries that had their answer in the first.
        place, token = (is_query & ~answered).nonzero(as_tuple=True)
        assert torch.equal(outputs[token], group.out[0, 0, place])
        answered[token] = True
    assert answered.all()


def split_groups(pair):
    """The groups of queries that reached the kernel, one call of a single row each."""
    channels = pair.asked.k.shape[3]
    for row in range(len(pair.reached.q)):
        of_row = {
            name: getattr(pair.reached, name)[row : row + 1, ..., :channels]
            for name in ("q", "k", "v", "out")
        }
        yield replace(pair.reached, **of_row)


def test_merging_leaves_other_tokens_as_they_are(family, size, tome):
    run = SampleRequest.with_tokens(family, *size, steps=1)
    for pair in watched(tome(family.build(), ratio=0.5), family, run):
        if pair.kinds is None:
            assert_untouched(pair)
            continue
        before = pair.kinds.index("picture")
        picture = pair.kinds.count("picture")
        left = picture - picture // 2
        channels = pair.asked.k.shape[3]
        assert pair.reached.lengths == (len(pair.kinds) - picture // 2,) * 2
        for name in ("q", "k", "v"):
            asked = getattr(pair.asked, name)
            reached = getattr(pair.reached, name)[..., :channels]
            assert torch.equal(reached[:, :, :before], asked[:, :, :before])
            assert torch.equal(reached[:, :, before + left :], asked[:, :, before + picture :])
        for name in ("q", "k"):
            full = getattr(pair.asked, name)[0, 0, before : before + picture]
            stands = getattr(pair.reached, name)[0, 0, before : before + left, :channels]
            found = (stands[:, None] == full[None]).all(dim=2)
            assert found.any(dim=1).all(), f"{name} has rows that are no token's"
            assert found.any(dim=0).sum() == left, f"{name} holds a token twice"
        assert_nothing_of_the_values_is_lost(pair)
        assert_every_token_gets_an_output(pair, before, left)


def assert_every_token_gets_an_output(pair, before, left):
    """Its own one if it has a query in the kernel, else that of one of the picture's queries."""
    channels = pair.asked.q.shape[3]
    picture = pair.kinds.count("picture")
    full, out = pair.asked.out, pair.reached.out[..., :channels]
    assert torch.equal(full[:, :, :before], out[:, :, :before])
    assert torch.equal(full[:, :, before + picture :], out[:, :, before + left :])
    full, out = full[:, :, before : before + picture], out[:, :, before : before + left]
    asked = pair.asked.q[:, :, before : before + picture]
    rows = find_rows(pair.reached.q[:, :, before : before + left, :channels], asked)
    assert torch.equal(full[:, :, rows], out)
    assert (full[0, 0, :, None] == out[0, 0, None]).all(dim=2).any(dim=1).all()


def assert_nothing_of_the_values_is_lost(pair):
    """Values times the sizes that the kernel weighs them with sum up to what they were."""
    channels = pair.asked.v.shape[3]
    sizes = pair.reached.mask.flatten(0, -2)[-1].exp()
    assert sizes.sum() == pytest.approx(len(pair.kinds), abs=1e-2)
    torch.testing.assert_close(
        torch.einsum("n,bhnd->bhd", sizes, pair.reached.v[..., :channels]),
        pair.asked.v.sum(dim=2),
        atol=1e-2,
        rtol=1e-3,
    )


@pytest.mark.parametrize("name", ["Flux", "Qwen-Image", "OmniGen2", "SD3.5 medium", "LTXV"])
@pytest.mark.parametrize(
    ("target", "queries_stay", "keys_stay"),
    [("keys and values", True, False), ("queries", False, True)],
)
def test_target_decides_what_is_merged(name, target, queries_stay, keys_stay, token_merge):
    (family,) = (family for family in REACHED if family.name == name)
    run = SampleRequest(steps=1)
    for pair in watched(token_merge(family.build(), ratio=0.5, target=target), family, run):
        if pair.kinds:
            full = len(pair.kinds)
            merged = full - pair.kinds.count("picture") // 2
            left = (full if queries_stay else merged, full if keys_stay else merged)
            assert pair.reached.lengths == left


@pytest.mark.parametrize("target", ["queries, keys and values", "keys and values", "queries"])
def test_a_mask_over_the_picture_is_reduced_with_it(target, token_merge):
    """As Flux gets from ComfyUI's ApplyStyleModel: a bias for every pair of tokens."""
    biased = with_bias(REACHED[0])
    run = SampleRequest(steps=1)
    model = token_merge(biased.build(), target=target, proportional_attention=False)
    for pair in watched(model, biased, run):
        rows = {
            name: find_rows(getattr(pair.reached, name), getattr(pair.asked, name))
            for name in ("q", "k")
        }
        expected = pair.asked.mask[:, rows["q"]][:, :, rows["k"]]
        assert torch.equal(pair.reached.mask.reshape(expected.shape), expected)


def test_a_mask_over_the_picture_is_downsampled_with_it(token_downsample):
    biased = with_bias(REACHED[0])
    run = SampleRequest(steps=1)
    model = token_downsample(biased.build(), method="nearest-exact")
    for pair in watched(model, biased, run):
        rows = rows_left_by_downsampling(pair.kinds, run.token_grid(biased), 2)
        sizes = torch.tensor([4.0 if pair.kinds[row] == "picture" else 1.0 for row in rows])
        expected = pair.asked.mask[:, :, rows] + sizes.log()
        torch.testing.assert_close(pair.reached.mask.reshape(expected.shape), expected)


def test_a_mask_over_the_picture_is_dealt_with_it(token_downsample):
    biased = with_bias(REACHED[0])
    how = {"method": "interleaved", "local_window": "off", "proportional_attention": False}
    for pair in watched(token_downsample(biased.build(), **how), biased, SampleRequest(steps=1)):
        assert len(pair.reached.q) > 1
        for group, mask in zip(split_groups(pair), pair.reached.mask, strict=True):
            queries, keys = find_rows(group.q, pair.asked.q), find_rows(group.k, pair.asked.k)
            assert torch.equal(mask[0], pair.asked.mask[0][queries][:, keys])


def with_bias(family):
    assert family.name == "Flux"

    def bias(generator, size):
        return {
            **family.extras(generator, size),
            "attention_mask": torch.randn(1, 55, 55, generator=generator),
            "attention_mask_img_shape": (6, 8),
        }

    return replace(family, extras=bias)


def find_rows(chosen, tokens):
    """Which tokens the chosen ones are. (B, H, M, D), (B, H, N, D) -> (M,)"""
    found = (chosen[0, 0, :, None] == tokens[0, 0, None]).all(dim=2)
    assert (found.sum(dim=1) == 1).all()
    return found.int().argmax(dim=1)
