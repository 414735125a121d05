"""Saved results as one page to read: self-contained HTML, or Markdown."""

from algoscope.reporting.report import Written as Written
from algoscope.reporting.report import report as report
