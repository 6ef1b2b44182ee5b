"""The command line of each command; ``parse(arguments)`` also answers ``--help``.

Only the standard library is used here and in what is imported from here, so that help and mistakes
are answered at once, before a sandbox is built.
"""
