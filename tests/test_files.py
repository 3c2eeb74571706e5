"""Files appear whole: an error on the way leaves what was there, and nothing beside it."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from inscape.errors import StudyError
from inscape.files import replacing
from inscape.reports.page import literal, write_page
from inscape.studies import Study, Summary, run


def write_half(path):
    with replacing(path) as draft:
        assert draft.suffix == path.suffix
        draft.write_text("half")
        raise KeyboardInterrupt


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.png"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt):
        write_half(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")
def test_links_and_pipes_are_written_in_place(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with replacing(tmp_path / "link") as draft:
        draft.write_text("through")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text() == "through"
    os.mkfifo(tmp_path / "pipe")
    with replacing(tmp_path / "pipe") as draft:
        assert draft == tmp_path / "pipe"


def study(content, full=False):
    def summarise(frame, out):
        (out / "figure.png").write_text(content)
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return Summary(figures=("figure.png",), notes=content, tables={"All": frame})

    return Study(
        name="s",
        title="S",
        configurations=lambda scale: [{"n": 1}],
        cell=lambda c: {"x": 1},
        summarise=summarise,
    )


@pytest.mark.parametrize("name", ["report.html", "summary.md", "all.csv", "figure.png"])
def test_a_disk_that_fills_up_leaves_the_old_report_of_a_study(name, tmp_path, monkeypatch):
    def fails(path):
        return path.suffix == Path(name).suffix

    def write_half(path, text, *arguments, **options):
        if not fails(path):
            return original(path, text, *arguments, **options)
        original(path, text[: len(text) // 2], *arguments, **options)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def csv_half(frame, path, **options):
        write_half(path, "n,x")

    with ThreadPoolExecutor(1) as executor:
        run(study("first"), out=tmp_path, executor=executor)
        before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.suffix != ".sqlite"}
        assert set(before) == {"report.html", "summary.md", "all.csv", "figure.png"}
        original = Path.write_text
        monkeypatch.setattr(Path, "write_text", write_half)
        if name == "all.csv":
            monkeypatch.setattr("pandas.DataFrame.to_csv", csv_half)
        with pytest.raises(StudyError, match=r"^cannot write .*: No space left on device"):
            run(study("second", full=name == "figure.png"), out=tmp_path, executor=executor)
    after = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.suffix != ".sqlite"}
    assert set(after) == set(before)
    assert after[name] == before[name]


def test_names_on_the_page_are_shown_as_they_are(tmp_path):
    import pandas as pd
    from markdown_it import MarkdownIt

    evil = "<img src=x onerror=evil()> [a](javascript:b) ![c](d) **e** `f` &lt; _g_ | n_train"
    evil += "\n\n# h \\* ~~i~~ <!-- j"
    write_page(
        tmp_path / "summary.md",
        title=evil,
        claims={},
        summary=Summary(
            tables={evil: pd.DataFrame({evil: [evil]})}, limits=[evil], figures={"a b.png": evil}
        ),
        footer="end",
    )
    text = (tmp_path / "summary.md").read_text()
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline} == {"text", "image"}
    assert [child.attrs["src"] for child in inline if child.type == "image"] == ["a%20b.png"]
    assert "html_block" not in {token.type for token in tokens}
    shown = ["".join(c.content for c in token.children) for token in tokens if token.type == "inline"]
    assert shown.count(" ".join(evil.split())) == 6
    assert literal("r = +0.90 [+0.80, +0.95] over n_train <= 27 * 3") == (
        "r = +0.90 [+0.80, +0.95] over n_train <= 27 * 3"
    )
