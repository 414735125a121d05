"""Saved results as one page to read: self-contained HTML, or Markdown."""

from algoscope.reporting.write import Written as Written
from algoscope.reporting.write import report as report
