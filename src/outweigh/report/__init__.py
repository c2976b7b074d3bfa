"""Self-contained HTML pages, to read and to hand to a colleague: about a fit, about experiments."""

from outweigh.report.experiments_page import build_report
from outweigh.report.fit_page import build_fit_report, write_report
from outweigh.report.fitted import Fitted

__all__ = ["Fitted", "build_fit_report", "build_report", "write_report"]
