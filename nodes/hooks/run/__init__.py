"""One sampling run: what our hooks know of it, the wrappers around it, and what is reported."""
