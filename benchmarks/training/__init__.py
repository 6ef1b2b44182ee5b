"""Makes the small models of ``trained``: fetches emoji, composes scenes of them, trains."""
