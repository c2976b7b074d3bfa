"""One self-contained HTML page about a fit, to read and to hand to a colleague."""

from outweigh.fit_report.fitted import Fitted
from outweigh.fit_report.page import build_fit_report

__all__ = ["Fitted", "build_fit_report"]
