"""
A study and its report
======================

A study trains many models, measures each, and writes one HTML file to look into and to send. This is the smallest one, twelve models of
handwritten digits at scale ``smoke``. It is far too small to say much, and its report says so.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path

import matplotlib.pyplot as plt

import inscape

folder = Path(tempfile.mkdtemp())
with ThreadPoolExecutor(1) as executor:
    run = inscape.studies.run("digits", scale="smoke", out=folder, executor=executor, progress=False)
page = inscape.reports.write_report(run, folder / "report.html")
print(run)

# %%
# The report itself, as it opens in a browser:


class Page:
    """An HTML file inside a notebook or a page."""

    def __init__(self, path):
        self.text = path.read_text(encoding="utf-8")

    def _repr_html_(self):
        return f'<iframe srcdoc="{escape(self.text)}" style="width:100%;height:620px;border:1px solid #8888"></iframe>'


Page(page)

# %%
# The rows behind it are a table.

frame = run.frame
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
for name, part in frame.groupby("model"):
    ax.plot(part["region_count"], part["gap"], "o", ms=8, label=name)
ax.set(xlabel="region count", ylabel="generalisation gap", title="Twelve models of the digits")
ax.legend()
plt.show()
