"""Samples with two models in turn, and says how fast each is and how far their results differ."""
