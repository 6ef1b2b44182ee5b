"""What ToMe for Stable Diffusion published: github.com/dbolya/tomesd, seconds per image."""

STEPS = 50
BATCHES = (1, 2, 4, 8, 10)
PUBLISHED = {(1024, 1): (6.40, 3.61, 2.81), (768, 1): (3.29, 2.24, 2.03)}
"""(side, images) -> plain, ToMe, ToMe with xFormers; on an A100, plain attention not fused."""
