"""The report in a browser: nothing is loaded, nothing fails, and what can be used works."""

import shutil
from dataclasses import replace

import pytest
from finished_study import finished
from test_report import evil_run

from inscape.reports import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
