"""Results into tables, figures and one page."""

from earwitness.report.build import ReportPaths, write_report

__all__ = ["ReportPaths", "write_report"]
