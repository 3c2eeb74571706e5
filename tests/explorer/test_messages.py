"""Messages: what is packed is unpacked, here and by the layout that the viewer reads."""

import json

import numpy as np
import pytest

from inscape.explorer.messages import packed, unpacked


def test_a_message_comes_back_as_it_was(rng):
    arrays = {
        "a": rng.normal(size=(3, 2)).astype(np.float32),
        "b": np.arange(5, dtype=np.int32),
        "c": np.array([], np.uint8),
        "d": np.array([7, 8, 9], np.uint8),
    }
    header, found = unpacked(packed({"name": "né <b>", "n": np.int64(3), "none": float("nan")}, arrays))
    assert header == {"name": "né <b>", "n": 3, "none": None}
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_arrays_start_at_multiples_of_eight():
    message = packed({"x": 1}, {"a": np.zeros(3, np.uint8), "b": np.ones(2, np.float32)})
    length = int.from_bytes(message[4:8], "little")
    assert message[:4] == b"INSC"
    assert (8 + length) % 8 == 0
    described = json.loads(message[8 : 8 + length])["arrays"]
    assert [offset % 8 for *_, offset in described] == [0, 0]
    assert np.frombuffer(message, "<f4", 2, 8 + length + described[1][3]).tolist() == [1.0, 1.0]


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="float64: a message holds float32, int32, uint8"):
        packed({}, {"a": np.zeros(2)})


def test_what_is_no_message_is_refused():
    with pytest.raises(ValueError, match="not a message of the explorer"):
        unpacked(b"PNG.....")
