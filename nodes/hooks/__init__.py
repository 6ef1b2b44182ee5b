"""How settings reach a model's attention: one folder for each architecture, the rest is shared."""
