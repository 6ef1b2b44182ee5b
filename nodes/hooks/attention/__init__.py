"""What all models share in one attention call: its arguments, its backend, and its plan."""
