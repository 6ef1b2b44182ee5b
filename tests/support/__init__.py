"""What tests of several folders need: small models, and records of what reaches attention."""
