"""The command line as a module: ``python -m outweigh``."""

import sys

from outweigh.cli import main

if __name__ == "__main__":
    sys.exit(main())
