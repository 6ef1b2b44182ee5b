"""How much of the picture stays, measured with the small trained models."""
