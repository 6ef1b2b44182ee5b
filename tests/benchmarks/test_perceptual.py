"""ST-LPIPS with the weights of its package."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from skimage import data

from benchmarks.quality import perceptual

stlpips = pytest.importorskip("stlpips_pytorch")


@pytest.fixture
def pictures() -> torch.Tensor:
    """(2, 3, 64, 64) in [0, 1]: one photograph, and the same mirrored."""
    photo = torch.from_numpy(data.chelsea()[20:276, 100:356]).permute(2, 0, 1)[None] / 255
    small = F.interpolate(photo, (64, 64), mode="area")
    return torch.cat([small, small.flip(-1)])


def test_equal_pictures_have_no_distance_and_noise_has_more_the_stronger(
    pictures: torch.Tensor,
) -> None:
    noise = torch.randn(pictures.shape, generator=torch.Generator().manual_seed(0))
    assert perceptual.st_lpips(pictures, pictures).tolist() == [0, 0]
    distances = [
        perceptual.st_lpips((pictures + share * noise).clamp(0, 1), pictures)
        for share in (0.02, 0.1, 0.5)
    ]
    assert (torch.stack(distances).diff(dim=0) > 0).all() and (distances[0] > 0).all()


def test_a_clip_is_as_far_as_its_frames_on_average(pictures: torch.Tensor) -> None:
    darker = torch.stack([pictures, 0.9 * pictures, 0.5 * pictures], dim=2)  # (B, 3, F, H, W)
    still = pictures[:, :, None].expand_as(darker)
    frames = [perceptual.st_lpips(share * pictures, pictures) for share in (1, 0.9, 0.5)]
    torch.testing.assert_close(
        perceptual.st_lpips_of_clips(darker, still), torch.stack(frames).mean(0)
    )


def test_the_weights_are_those_of_the_package() -> None:
    """It does not say where some are missing."""
    folder = Path(stlpips.__file__).parent / "weights" / "vST0.0"
    kept = torch.load(folder / "alex_shift_tolerant.pth", map_location="cpu")
    own = perceptual.load().state_dict()
    assert kept and all(torch.equal(own[name], weight) for name, weight in kept.items())
    # ``lins`` are the same layers as ``lin0`` to ``lin4`` under a second name.
    assert {name for name in own if not name.startswith("lins.")} == {*kept}
