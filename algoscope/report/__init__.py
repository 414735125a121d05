"""Saved results as one page to read: self-contained HTML, or Markdown."""

from algoscope.report.writing import Written as Written
from algoscope.report.writing import write_report as write_report
