"""The command line: ``outweigh fit``, ``score``, ``demo``, ``reproduce``, ``plot`` and ``list``."""

from outweigh.cli.main import main

__all__ = ["main"]
