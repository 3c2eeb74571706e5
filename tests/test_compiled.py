"""Compiled loops are kept on disk where that is possible, and compiled anew where it is not."""

import importlib.util
import logging
import pickle
import sys
import threading
import time

import numba
import numpy as np
import pytest
from numba.core.caching import CacheImpl
from numba.core.compiler_lock import global_compiler_lock

from inscape.compiled import kept_loops, loops_compiled

PLAIN = "from inscape.compiled import compiled\n@compiled\ndef f(x):\n    return x + 1\n"
OF_PAIRS = (
    "from typing import NamedTuple\n"
    "from inscape.compiled import compiled\n"
    "class Pair(NamedTuple):\n    a: int\n    b: int\n"
    "@compiled\ndef f(p):\n    return p[0] + p[1]\n"
)


@pytest.fixture
def loop(tmp_path, monkeypatch):
    """A function that writes a module with a loop `f`, imports it anew, and returns it."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")

    def written(source):
        path = tmp_path / "loops.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location("loops", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "loops", module)
        spec.loader.exec_module(module)
        return module

    with loops_compiled(True):
        yield written


def index_of(tmp_path):
    (index,) = (tmp_path / "__pycache__").glob("loops.f-*.nbi")
    return index


def n_hits(function):
    return sum(function.dispatcher.stats.cache_hits.values())


def test_a_loop_is_kept(loop):
    assert loop(PLAIN).f(1) == 2
    again = loop(PLAIN).f
    assert again(1) == 2
    assert n_hits(again) == 1


def test_who_looks_for_a_loop_waits_for_who_compiles_one(loop, monkeypatch):
    """Both ask numba's one generator of code, which two threads cannot do at a time."""
    dispatcher, held = loop(PLAIN).f.dispatcher, []
    context = type(dispatcher.targetctx)
    generator = context.codegen

    def spied(self):
        held.append(global_compiler_lock.is_locked())
        return generator(self)

    monkeypatch.setattr(context, "codegen", spied)
    kept_loops.is_kept(dispatcher, (1,))
    assert held
    assert all(held)


UNTIL_TOLD = (
    "from inscape.compiled import compiled\n"
    "@compiled\ndef f(told, heard, limit):\n"
    "    for k in range(limit):\n"
    "        heard[0] = k\n"
    "        if told[0] != 0:\n            return k\n"
    "    return limit\n"
)


def test_a_loop_lets_another_thread_interpret_meanwhile(loop):
    """Held, the interpreter's lock would let nobody tell the loop to end before it ends by itself."""
    f, limit = loop(UNTIL_TOLD).f, 10**10
    f(np.ones(1), np.zeros(1), 1)
    told, heard, found = np.zeros(1), np.full(1, -1.0), []
    thread = threading.Thread(target=lambda: found.append(f(told, heard, limit)))
    thread.start()
    while heard[0] < 0:
        time.sleep(0.001)
    told[0] = 1
    thread.join()
    assert found[0] < limit


@pytest.mark.parametrize("damage", ["index", "rest of the index", "data", "empty"])
def test_damaged_files_are_compiled_again_and_replaced(loop, tmp_path, damage):
    loop(PLAIN).f(1)
    index = index_of(tmp_path)
    if damage == "data":
        next((tmp_path / "__pycache__").glob("loops.f-*.nbc")).write_bytes(b"not a pickle")
    else:
        whole = {
            "index": b"\x80not a pickle",
            "rest of the index": pickle.dumps(numba.__version__) + b"\x80\x04cnowhere\nNothing\n.",
            "empty": b"",
        }
        index.write_bytes(whole[damage])
    repaired = loop(PLAIN).f
    assert repaired(1) == 2
    assert n_hits(repaired) == 0
    again = loop(PLAIN).f
    assert again(1) == 2
    assert n_hits(again) == 1


def test_an_index_that_names_a_class_that_is_gone_is_compiled_again(loop):
    before = loop(OF_PAIRS)
    assert before.f(before.Pair(1, 2)) == 3
    after = loop(OF_PAIRS.replace("Pair", "Couple"))
    assert after.f(after.Couple(1, 2)) == 3


def test_without_a_folder_for_the_cache_loops_work_and_one_line_says_so(loop, monkeypatch, caplog):
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    kept_loops.say_that_nothing_is_kept.cache_clear()
    with caplog.at_level(logging.WARNING, logger="inscape"):
        module = loop(PLAIN + PLAIN.replace("def f", "def g"))
        assert (module.f(1), module.g(2)) == (2, 3)
    assert ["NUMBA_CACHE_DIR" in record.getMessage() for record in caplog.records] == [True]


def test_a_disk_that_is_full_stops_nothing(loop, monkeypatch, caplog):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile._save_index", fail)
    kept_loops.say_that_nothing_is_kept.cache_clear()
    with caplog.at_level(logging.WARNING, logger="inscape"):
        assert loop(PLAIN).f(1) == 2
    assert len(caplog.records) == 1


def test_a_loop_is_compiled_again_when_a_file_that_it_imports_from_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_loops, "PACKAGE", tmp_path)
    files = {
        "loop.py": "from inscape.folder import (\n    part,\n)\n",
        "folder/part.py": "from inscape.constants import SIZE\n",
        "constants.py": "SIZE = 1\n",
        "unrelated.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def digest():
        return kept_loops.source_digest(tmp_path / "loop.py")

    before = digest()
    (tmp_path / "unrelated.py").write_text("x = 1\n")
    assert digest() == before
    (tmp_path / "constants.py").write_text("SIZE = 16\n")
    assert digest() != before
