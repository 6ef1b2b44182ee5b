"""How settings reach a model's attention: one file per host architecture."""
