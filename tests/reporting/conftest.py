"""Fixtures of the tests of pages."""

from support.browser import browser as browser
