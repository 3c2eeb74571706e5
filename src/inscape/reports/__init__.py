"""The report of a study: one HTML file that opens offline, on a phone and on paper."""

from inscape.reports.report import build_report, write_report

__all__ = ["build_report", "write_report"]
