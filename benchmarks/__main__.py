"""``python -m benchmarks``: the same as ``python -m devtools bench``, without the sandbox."""

import sys

from .speed.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
