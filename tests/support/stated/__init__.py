"""Sentences of the documents, with the numbers that the results and the code give for them."""

from . import in_documents, in_help, in_quality

STATED = [*in_documents.list_sentences(), *in_help.list_sentences(), *in_quality.list_sentences()]
"""Pages, a sentence that all of them have, and what stands in its braces."""
