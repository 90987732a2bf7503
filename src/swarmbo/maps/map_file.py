"""The file of a behaviour map: a line of magic, a line of JSON, arrays, a checksum.

A file is data, never code, and everything in it is checked before it is used;
docs/formats.md describes it byte by byte.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from swarmbo.controller.genomes import MAX_CONNECTIONS, MAX_HIDDEN, Genomes
from swarmbo.controller.network import OUTPUTS
from swarmbo.errors import InputError, is_integer, short
from swarmbo.files import read_bytes

LOG_ROWS = 2001  # of a map's log: every tenth of 20,000 generations, and the start
MAX_CELLS = 2**16

MAGIC = b"swarmbo map 1\n"
CHECKSUM = 32  # bytes of BLAKE2b
MAX_HEADER = 2**20  # bytes
MAX_PAYLOAD = 2**27  # bytes, before compression

_DTYPES = {
    "cells": "<i4",
    "performance": "<f8",
    "descriptor": "<f8",
    "centroids": "<f8",
    "hidden": "|u1",
    "connections": "<u2",
    "bias": "<f8",
    "source": "|u1",
    "target": "|u1",
    "weight": "<f8",
    "log_generation": "<i8",
    "log_evaluations": "<i8",
    "log_filled_cells": "<i8",
    "log_best": "<f8",
    "log_mean": "<f8",
}
_TABLES = ("cells", "descriptor", "centroids")  # two-dimensional, all others are columns
_GENES = ("hidden", "connections", "bias", "source", "target", "weight")
_ALWAYS = [name for name in _DTYPES if name != "centroids" and name not in _GENES]


def pack(header: Mapping[str, Any], columns: Mapping[str, np.ndarray]) -> bytes:
    """The content of a file with a header and arrays, by name and in their order."""
    arrays = {name: np.asarray(array, _DTYPES[name]) for name, array in columns.items()}
    listed = [[name, _DTYPES[name], list(array.shape)] for name, array in arrays.items()]
    text = canonical({**header, "arrays": listed})
    payload = b"".join(array.tobytes() for array in arrays.values())
    if len(text) > MAX_HEADER or len(payload) > MAX_PAYLOAD:
        raise InputError(
            f"the map is too large for a file: {len(text)} bytes of header and "
            f"{len(payload)} of arrays; at most {MAX_HEADER} and {MAX_PAYLOAD} are possible"
        )
    data = MAGIC + text + b"\n" + zlib.compress(payload, 9)
    return data + _checksum(data)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays in the content of a file; InputError when it is not a map's."""
    text, packed = _unwrapped(data)
    header = _parsed(text)
    return header, _unpacked(packed, _layout(header["arrays"]))


def ragged(genomes: Genomes) -> dict[str, np.ndarray]:
    """The used entries of the genomes, one controller after the other."""
    biases = _used(genomes.bias.shape[1], OUTPUTS + genomes.hidden)
    connections = _used(genomes.weight.shape[1], genomes.count)
    return {
        "hidden": genomes.hidden,
        "connections": genomes.count,
        "bias": genomes.bias[biases],
        "source": genomes.source[connections],
        "target": genomes.target[connections],
        "weight": genomes.weight[connections],
    }


def dense(arrays: dict[str, np.ndarray]) -> Genomes:
    """The genomes of which a file holds the used entries; InputError when they do not fit."""
    hidden = arrays["hidden"].astype(np.int32)
    count = arrays["connections"].astype(np.int32)
    for name, sizes, most in (
        ("hidden", hidden, MAX_HIDDEN),
        ("connections", count, MAX_CONNECTIONS),
    ):
        if sizes.max() > most:
            raise InputError(f"a controller has {sizes.max()} {name}; at most {most} are possible")
    parts: dict[str, np.ndarray] = {}
    for names, capacity, sizes in (
        (("bias",), OUTPUTS + MAX_HIDDEN, OUTPUTS + hidden),
        (("source", "target", "weight"), MAX_CONNECTIONS, count),
    ):
        used = _used(capacity, sizes)
        for name in names:
            values = arrays[name]
            if len(values) != sizes.sum():
                raise InputError(
                    f"{name} has {len(values)} entries; the controllers need {sizes.sum()}"
                )
            parts[name] = np.zeros(used.shape, values.dtype.newbyteorder("="))
            parts[name][used] = values
    return Genomes(hidden=hidden, count=count, **parts)


def _used(capacity: int, sizes: np.ndarray) -> np.ndarray:
    """Which of `capacity` entries are used, for each of the sizes."""
    return np.arange(capacity) < np.asarray(sizes)[:, None]


def canonical(value: Any) -> bytes:
    """The one way to write a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=CHECKSUM).digest()


def read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file that may be a map."""
    most = len(MAGIC) + MAX_HEADER + MAX_PAYLOAD + CHECKSUM
    data = read_bytes(path, most)
    if len(data) > most:
        raise InputError(f"is larger than any map; at most {most} bytes are possible")
    return data


def _unwrapped(data: bytes) -> tuple[bytes, bytes]:
    """The header and the packed arrays in the content of a file."""
    if not data.startswith(MAGIC):
        known, _, version = MAGIC.decode().strip().rpartition(" ")
        if data.startswith(known.encode() + b" "):
            raise InputError(f"is of another version of the format; this swarmbo reads {version}")
        raise InputError(f"is not a map; the first line of one is {known + ' ' + version!r}")
    if _checksum(data[:-CHECKSUM]) != data[-CHECKSUM:]:
        raise InputError("is damaged: the checksum does not fit the content; get the file again")
    text, newline, packed = data[len(MAGIC) : -CHECKSUM].partition(b"\n")
    if not newline or len(text) > MAX_HEADER:
        raise InputError("has no line of JSON after the first line; get the file again")
    return text, packed


def _parsed(text: bytes) -> dict[str, Any]:
    """The header; InputError unless it is an object with exactly the known names."""
    try:
        header = json.loads(text)
        rewritten = canonical(header)
    except (ValueError, RecursionError):
        raise InputError("the header is not JSON, or not plain; get the file again") from None
    names = ("arrays", "descriptor", "made", "robots")
    if not isinstance(header, dict) or sorted(header) != sorted(names):
        raise InputError(f"the header does not consist of {', '.join(names)}; get the file again")
    if rewritten != text:
        raise InputError("the header is not in the canonical form; get the file again")
    return header


def _layout(listed: Any) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays that the header lists; InputError unless a map has such arrays."""
    shapes: dict[str, tuple[int, ...]] = {}
    for entry in listed if isinstance(listed, list) else [listed]:
        if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[0], str):
            raise InputError(f"arrays: {short(entry)} is not [name, type, shape]")
        name, kind, shape = entry
        if name in shapes or kind != _DTYPES.get(name):
            raise InputError(f"arrays: {short(entry)} is unknown, of a wrong type or there twice")
        if (
            not isinstance(shape, list)
            or len(shape) != (2 if name in _TABLES else 1)
            or not all(is_integer(length) and 0 <= length <= MAX_PAYLOAD for length in shape)
        ):
            raise InputError(f"arrays: {name} has the impossible shape {short(shape)}")
        shapes[name] = tuple(shape)
    _check_shapes(shapes)
    return shapes


def _check_shapes(shapes: dict[str, tuple[int, ...]]) -> None:
    genes = [name for name in _GENES if name in shapes]
    expected = [
        name
        for name in _DTYPES
        if name in _ALWAYS or (name == "centroids" and name in shapes) or (genes and name in _GENES)
    ]
    if list(shapes) != expected:
        raise InputError(f"arrays: they are not {', '.join(expected)}, in this order")
    rows = shapes["cells"][0]
    if rows == 0:
        raise InputError("arrays: there are no cells")
    limits = {"cells": MAX_CELLS, "centroids": MAX_CELLS, "log_generation": LOG_ROWS}
    for name, most in limits.items():
        if shapes.get(name, (0,))[0] > most:
            raise InputError(f"arrays: {name} has more than {most} rows")
    for name in ("performance", "descriptor", *genes[:2]):
        if shapes[name][0] != rows:
            raise InputError(f"arrays: {name} has {shapes[name][0]} rows; the cells are {rows}")
    if sum(map(_size, shapes, shapes.values())) > MAX_PAYLOAD:
        raise InputError(f"arrays: they have more than {MAX_PAYLOAD} bytes")


def _size(name: str, shape: Sequence[int]) -> int:
    return prod(shape) * np.dtype(_DTYPES[name]).itemsize


def _unpacked(packed: bytes, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The arrays, which must fill the unpacked bytes exactly."""
    total = sum(map(_size, shapes, shapes.values()))
    unpacker = zlib.decompressobj()
    try:
        payload = unpacker.decompress(packed, total + 1)
    except zlib.error:
        raise InputError("the arrays cannot be unpacked; get the file again") from None
    if len(payload) != total or not unpacker.eof or unpacker.unused_data:
        raise InputError(f"the arrays do not fill {total} bytes exactly; get the file again")
    arrays, start = {}, 0
    for name, shape in shapes.items():
        arrays[name] = np.ndarray(shape, _DTYPES[name], payload, start)
        start += arrays[name].nbytes
    return arrays
