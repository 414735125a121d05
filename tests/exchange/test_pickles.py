"""PyTorch's files are read exactly, and nothing in a hostile one is ever run."""

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.torch_present import require

from algoscope.exchange.pickles import read_pickled
from algoscope.foundation.files import DamagedFileError


def write(path: Path, program: bytes, **storages: bytes) -> Path:
    """Write a zip like that of torch.save; storages are named s0, s1, …"""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", program)
        for name, content in storages.items():
            archive.writestr(f"archive/data/{name[1:]}", content)
    return path


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value: int) -> bytes:
    raw = value.to_bytes(20, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def numbers(*values: int) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(
    size: tuple[int, ...] = (2,),
    stride: tuple[int, ...] = (1,),
    offset: int = 0,
    count: int = 4,
    key: bytes = text("0"),
    kind: bytes = b"ctorch\nFloatStorage\n",
    what: bytes = text("storage"),
) -> bytes:
    """Return the pickle of one float tensor, any part of it replaced."""
    reference = b"(" + what + kind + key + text("cpu") + number(count) + b"tQ"
    rest = number(offset) + numbers(*size) + numbers(*stride) + b"\x89N"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + reference + rest + b"tR."


FOUR = np.arange(4, dtype="<f4").tobytes()


def refusal(path: Path) -> str:
    """Return the one sentence with which a file is rejected."""
    with pytest.raises(DamagedFileError) as caught:
        read_pickled(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(f"{path} ")


def test_the_smallest_file_is_read(tmp_path):
    array = read_pickled(write(tmp_path / "a.pt", tensor(), s0=FOUR))
    np.testing.assert_array_equal(array, np.array([0, 1], np.float32))
    assert not array.flags.writeable


def test_what_torch_saves_is_read_as_it_is(tmp_path):
    torch = require()
    module = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5))
    module(torch.randn(4, 3)).sum().backward()
    adam = torch.optim.Adam(module.parameters())
    adam.step()
    base = torch.arange(24.0).reshape(4, 6)
    saved = {
        "model_state_dict": module.state_dict(),
        "optimizer_state_dict": adam.state_dict(),
        "train_step": 5000,
        "views": [base.T, base[1:3, ::2], base[0, 0], torch.zeros(0, 3)],
        "kinds": (torch.ones(2, dtype=torch.bool), torch.arange(3), base.half()),
        "parameter": torch.nn.Parameter(base.double()),
        "plain": {"a": None, 1: 2.5, "b": [True, "text", -7, 2**40]},
    }
    path = tmp_path / "state.pt"
    torch.save(saved, path)
    found = read_pickled(path)
    assert found["train_step"] == 5000
    assert found["plain"] == saved["plain"]
    assert found["optimizer_state_dict"]["param_groups"][0]["betas"] == (0.9, 0.999)
    pairs = [
        *zip(found["views"], saved["views"], strict=True),
        *zip(found["kinds"], saved["kinds"], strict=True),
        (found["parameter"], saved["parameter"]),
        *((found["model_state_dict"][k], v) for k, v in module.state_dict().items()),
    ]
    for array, original in pairs:
        expected = original.detach().numpy()
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected, strict=True)


class Calls:
    """Something that calls a function when it is unpickled."""

    def __init__(self, function: Callable, *arguments: Any):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def poison(target: Path) -> dict[str, bytes]:
    """Return pickles that would create `target` if they were run."""
    command = f"touch {target}"
    code = f"open({str(target)!r}, 'w')"
    calls = {
        "os.system": Calls(os.system, command),
        "eval": Calls(eval, code),
        "exec": Calls(exec, code),
        "open": Calls(open, str(target), "w"),
        "getattr": Calls(getattr, os, "system"),
        "in a dictionary": {"model_state_dict": OrderedDict(w=Calls(eval, code))},
        "in a key": {Calls(eval, code): 1},
        "in a list": [[[Calls(os.system, command)]]],
    }
    pickles = {
        f"{name}, protocol {protocol}": pickle.dumps(value, protocol)
        for name, value in calls.items()
        if name != "getattr"
        for protocol in range(6)
    }
    system = b"cos\nsystem\n" + text(command)
    return {
        **pickles,
        "INST": b"(" + text(command) + b"ios\nsystem\n.",
        "OBJ": b"(cos\nsystem\n" + text(command) + b"o.",
        "NEWOBJ": system + b"\x85\x81.",
        "NEWOBJ_EX": b"cos\nsystem\n" + text(command) + b"\x85}\x92.",
        "EXT1": b"\x82\x01.",
        "STACK_GLOBAL": text("os")
        + text("system")
        + b"\x93"
        + text(command)
        + b"\x85R.",
        "dotted": b"ctorch\n_utils._rebuild_tensor_v2.__globals__\n.",
        "torch.load": b"ctorch\nload\n" + text(str(target)) + b"\x85R.",
        "PERSID": b"Pos.system\n.",
        "BUILD of a name": b"ctorch\nFloatStorage\n}" + text("x") + b"K\x01sb.",
        "call of text": text("collections.OrderedDict") + b")R.",
        "call of a storage": b"ctorch\nFloatStorage\n)R.",
        "OrderedDict of pairs": b"ccollections\nOrderedDict\n]\x85R.",
        "nested persistent": b"((" + text("storage") + b"cos\nsystem\ntQtQ.",
    }


def test_hostile_pickles_are_refused_and_nothing_is_run(tmp_path):
    target = tmp_path / "executed"
    for name, program in poison(target).items():
        path = write(tmp_path / "state.pt", program)
        assert len(refusal(path)) < 300, name
        assert not target.exists(), name


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (tensor(size=(5,)), "has a tensor that is larger than its storage."),
        (
            tensor(size=(2,), stride=(4,)),
            "has a tensor that is larger than its storage.",
        ),
        (tensor(offset=3), "has a tensor that is larger than its storage."),
        (tensor(size=(2**70,), stride=(0,)), "has a tensor that is larger than its"),
        (
            tensor(size=(5,), stride=(0,)),
            "has a tensor that is larger than its storage.",
        ),
        (tensor(offset=-1), "has a tensor with a negative size."),
        (tensor(stride=(-1,)), "has a tensor with a negative size."),
        (tensor(size=(-2,)), "has a tensor with a negative size."),
        (tensor(size=(2, 2)), "is a damaged file of torch.save (ValueError)."),
        (tensor(count=5), "has a storage of another size than its pickle says."),
        (tensor(count=2**66), "has a storage of another size than its pickle says."),
        (tensor(key=text("1")), "lacks its record 'archive/data/1'."),
        (
            tensor(key=text("../data.pkl")),
            "lacks its record 'archive/data/../data.pkl'.",
        ),
        (tensor(key=number(0)), "refers to something that is not a storage."),
        (tensor(what=text("module")), "refers to something that is not a storage."),
        (tensor(kind=text("torch.FloatStorage")), "refers to something that is not"),
        (tensor(kind=b"ctorch\nDoubleStorage\n"), "has a storage of another size"),
        (tensor(kind=b"ctorch\nBFloat16Storage\n"), "names 'torch.BFloat16Storage',"),
        (tensor()[:-1], "is a damaged file of torch.save (ValueError)."),
        (b"", "is a damaged file of torch.save (ValueError)."),
        (b"}}Ns.", "has a dictionary with unusual keys."),
        (b"K\x01" * 2 + b".", "is a damaged file of torch.save (ValueError)."),
        (b"r\xff\xff\xff\xff.", "is a damaged file of torch.save (IndexError)."),
    ],
)
def test_references_outside_of_the_file_are_refused(tmp_path, program, message):
    found = refusal(write(tmp_path / "state.pt", program, s0=FOUR))
    assert found.startswith(message)


def test_a_memo_of_any_number_takes_no_memory(tmp_path):
    program = b"N" + b"r\xff\xff\xff\xff" + b"0."
    assert "POP" in refusal(write(tmp_path / "state.pt", program))


def test_the_message_names_what_is_refused_and_what_to_do(tmp_path):
    path = write(tmp_path / "state.pt", pickle.dumps(Calls(os.system, "true"), 2))
    assert refusal(path) == (
        f"names '{os.system.__module__}.system', which is not read. Load it in a "
        "PyTorch that you trust and save `model.state_dict()` again."
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"import os", b"\x93NUMPY" + bytes(64), pickle.dumps({"a": 1})],
)
def test_what_is_no_zip_is_refused(tmp_path, content):
    path = tmp_path / "state.pt"
    path.write_bytes(content)
    assert refusal(path) == "is not a file of torch.save (no zip of a pickle)."


def test_old_formats_are_refused(tmp_path):
    torch = require()
    path = tmp_path / "state.pt"
    torch.save({"a": torch.ones(2)}, path, _use_new_zipfile_serialization=False)
    assert refusal(path).startswith("was written by PyTorch before 1.6, in a format")
    path.write_bytes(bytes(257) + b"ustar" + bytes(250))
    assert refusal(path).startswith("was written by PyTorch before 1.6, in a format")


def test_a_whole_module_is_refused(tmp_path):
    torch = require()
    path = tmp_path / "state.pt"
    torch.save(torch.nn.Linear(1, 1), path)
    assert refusal(path).startswith("names 'torch.nn.modules.linear.Linear', which")


def test_bombs_and_strange_archives_are_refused(tmp_path):
    path = tmp_path / "state.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**7))
    assert refusal(path).startswith("has compressed or overlapping records")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../escape", b"")
        archive.writestr("a/data.pkl", b"N.")
        archive.writestr("b/data.pkl", b"N.")
    assert refusal(path) == "is not a file of torch.save (no zip of a pickle)."
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"N.")
        archive.writestr("a/byteorder", b"big")
    assert refusal(path).startswith("holds numbers in another byte order")


def whole_file() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", tensor())
        archive.writestr("archive/data/0", FOUR)
    return buffer.getvalue()


WHOLE = whole_file()


def test_every_truncated_file_is_refused(tmp_path):
    path = tmp_path / "state.pt"
    for length in range(len(WHOLE)):
        path.write_bytes(WHOLE[:length])
        refusal(path)


@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=6)
)
def test_changed_bytes_give_an_array_or_one_clear_error(tmp_path_factory, changes):
    content = bytearray(WHOLE)
    for place, byte in changes:
        content[place] = byte
    read_or_refuse(tmp_path_factory, bytes(content))


@given(st.binary(max_size=80))
def test_any_pickle_gives_a_value_or_one_clear_error(tmp_path_factory, program):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + program + b".")
        archive.writestr("archive/data/0", FOUR)
    read_or_refuse(tmp_path_factory, buffer.getvalue())


PIECES = (
    *(bytes([code]) for code in b"(tQRb}])\x85\x86\x87NsuaeK0.\x88\x89"),
    *(b"q\x00", b"h\x00", b"K\x01", text("0"), text("storage"), text("cpu")),
    *(b"ctorch._utils\n_rebuild_tensor_v2\n", b"ccollections\nOrderedDict\n"),
    *(
        b"ctorch\nFloatStorage\n",
        b"cos\nsystem\n",
        number(4),
        numbers(2),
        tensor()[:-1],
    ),
)


@given(st.lists(st.sampled_from(PIECES), max_size=24))
def test_any_program_of_known_pieces_gives_a_value_or_one_clear_error(
    tmp_path_factory, pieces
):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", b"".join(pieces) + b".")
        archive.writestr("archive/data/0", FOUR)
    read_or_refuse(tmp_path_factory, buffer.getvalue())


def read_or_refuse(factory: pytest.TempPathFactory, content: bytes) -> None:
    path = factory.getbasetemp() / "fuzzed.pt"
    path.write_bytes(content)
    with suppress(DamagedFileError):  # any other error fails the test
        read_pickled(path)
