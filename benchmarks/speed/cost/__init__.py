"""What attention launches and moves on a GPU, counted without one, and times estimated from it."""
