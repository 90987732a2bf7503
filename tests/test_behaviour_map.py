"""Maps: what they hold, what they refuse, and files that cannot harm."""

import json
import pickle
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmbo import Controller, InputError
from swarmbo.controller.genomes import Genomes
from swarmbo.maps import behaviour_map as module
from swarmbo.maps import map_file
from swarmbo.maps.behaviour_map import BehaviourMap, Log, bundled_maps, load_map

MADE = {
    "seed": 3,
    "evaluations": 6000,
    "options": {"preset": "quick", "batch": 500, "tau": 0.1, "resume": False, "note": None},
    "versions": {"swarmbo": "0.1.0", "numba": "0.61"},
}


def random_controller(draw: np.random.Generator) -> Controller:
    """A controller of 0 to 4 hidden neurons and up to 12 connections."""
    hidden = int(draw.integers(5))
    sources = [*range(10), *range(12, 12 + hidden)]
    pairs = {
        (int(draw.choice(sources)), int(draw.integers(10, 12 + hidden)))
        for _ in range(draw.integers(13))
    }
    return Controller(
        hidden,
        tuple(draw.uniform(-2, 2, 2 + hidden).tolist()),
        tuple((*pair, float(draw.uniform(-2, 2))) for pair in sorted(pairs)),
    )


def random_log(draw: np.random.Generator, rows: int) -> Log:
    """A plausible course of evolution over so many generations."""
    return Log(
        generation=np.arange(rows),
        evaluations=1000 + 500 * np.arange(rows),
        filled_cells=np.sort(draw.integers(1, 500, rows)),
        best=np.sort(draw.uniform(1, 5, rows)),
        mean=np.sort(draw.uniform(0, 1, rows)),
    )


def synthetic_map(seed: int = 1, cells: int = 12, descriptor: str = "hbd") -> BehaviourMap:
    """A map of random controllers, with made-up performances."""
    draw = np.random.default_rng(seed)
    genomes = Genomes.from_controllers([random_controller(draw) for _ in range(cells)])
    common: dict[str, Any] = {
        "performance": draw.integers(0, 240, cells) / 8,
        "genomes": genomes,
        "made": MADE | {"seed": seed},
        "log": random_log(draw, 50),
    }
    if descriptor == "hbd":
        chosen = np.sort(draw.choice(16**3, cells, replace=False))
        grid = np.stack(np.unravel_index(chosen, (16, 16, 16)), axis=1)
        place = np.clip(grid / 16 + draw.uniform(-0.03, 0.03, grid.shape), 0, 1)
        return BehaviourMap(descriptor_name="hbd", cells=grid, descriptor=place, **common)
    centroids = draw.uniform(size=(64, 10))
    chosen = np.sort(draw.choice(64, cells, replace=False))
    return BehaviourMap(
        descriptor_name="sdbc",
        cells=chosen[:, None],
        descriptor=np.clip(centroids[chosen] + 0.01, 0, 1),
        centroids=centroids,
        **common,
    )


def arrays_of(part: Any) -> dict[str, bytes]:
    """The arrays in a dataclass, by name, with type, shape and every bit."""
    values = {entry.name: getattr(part, entry.name) for entry in fields(part)}
    return {
        name: f"{value.dtype.name} {value.shape} ".encode() + value.tobytes()
        for name, value in values.items()
        if isinstance(value, np.ndarray)
    }


def assert_same(left: BehaviourMap, right: BehaviourMap) -> None:
    """All that two maps hold is the same, bit for bit."""
    assert arrays_of(left) == arrays_of(right)
    assert arrays_of(left.log) == arrays_of(right.log)
    assert (left.genomes is None) == (right.genomes is None)
    if left.genomes is not None:
        assert arrays_of(left.genomes) == arrays_of(right.genomes)
    assert json.dumps(left.made, sort_keys=True) == json.dumps(right.made, sort_keys=True)
    assert (left.descriptor_name, left.robots) == (right.descriptor_name, right.robots)


@pytest.mark.parametrize("descriptor", ["hbd", "sdbc"])
def test_loaded_map_is_the_saved_one_bit_for_bit(tmp_path: Path, descriptor: str) -> None:
    saved = synthetic_map(descriptor=descriptor)
    saved.save(tmp_path / "a.map")
    loaded = BehaviourMap.load(tmp_path / "a.map")
    assert_same(loaded, saved)
    assert loaded.controllers() == saved.controllers()
    loaded.save(tmp_path / "b.map")
    assert (tmp_path / "a.map").read_bytes() == (tmp_path / "b.map").read_bytes()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cells=st.integers(1, 60))
def test_any_map_survives_its_file(seed: int, cells: int) -> None:
    original = synthetic_map(seed, cells)
    assert_same(BehaviourMap.from_bytes(original.to_bytes()), original)


def test_odd_numbers_keep_their_bits() -> None:
    odd = [-0.0, 5e-324, 0.1, 1 / 3, 1e9]
    original = BehaviourMap.from_arrays([[n] for n in range(5)], odd)
    loaded = BehaviourMap.from_bytes(original.to_bytes())
    assert loaded.performance.tobytes() == np.array(odd).tobytes()


def test_largest_controller_survives_the_file() -> None:
    pairs = [(source, target) for source in (*range(10), *range(12, 76)) for target in (10, 75)]
    pairs += [(source, 40) for source in range(12, 76)]
    pairs += [(source, 41) for source in range(12, 56)]
    largest = Controller(64, (0.5,) * 66, tuple((*pair, -1.5) for pair in pairs[:256]))
    genomes = Genomes.from_controllers([largest, Controller(0, (0.0, 1.0), ())])
    original = BehaviourMap.from_arrays([[0], [1]], [1, 2], genomes=genomes)
    assert BehaviourMap.from_bytes(original.to_bytes()).controllers()[0] == largest


def test_equal_maps_give_equal_bytes() -> None:
    assert synthetic_map(5).to_bytes() == synthetic_map(5).to_bytes()
    assert synthetic_map(5).to_bytes() != synthetic_map(6).to_bytes()
    made = dict(reversed(MADE.items()))
    assert replace(synthetic_map(3), made=made).to_bytes() == synthetic_map(3).to_bytes()


def test_summaries_are_in_items_per_robot() -> None:
    behaviour_map = BehaviourMap.from_arrays([[0, 1], [2, 3]], [6, 12], robots=3)
    assert behaviour_map.best == 4
    assert behaviour_map.mean == 3
    assert behaviour_map.filled_cells == 2


def test_coordinates_are_sixteenths_or_centroids() -> None:
    hbd, sdbc = synthetic_map(), synthetic_map(descriptor="sdbc")
    assert (hbd.coordinates == hbd.cells / 16).all()
    assert sdbc.centroids is not None
    assert (sdbc.coordinates == sdbc.centroids[sdbc.cells[:, 0]]).all()


def test_arrays_of_ones_own_keep_their_order() -> None:
    cells = [[9, 1], [0, 5], [3, 3]]
    behaviour_map = BehaviourMap.from_arrays(cells, [1.5, 2, 0])
    assert behaviour_map.cells.tolist() == cells
    assert behaviour_map.performance.tolist() == [1.5, 2, 0]
    assert behaviour_map.coordinates.tolist() == [[9 / 16, 1 / 16], [0, 5 / 16], [3 / 16, 3 / 16]]
    assert (behaviour_map.descriptor_name, behaviour_map.genomes) == ("custom", None)
    assert_same(BehaviourMap.from_bytes(behaviour_map.to_bytes()), behaviour_map)
    with pytest.raises(InputError, match="holds no controllers"):
        behaviour_map.controllers()


def test_arrays_are_copied_and_cannot_be_written_to() -> None:
    cells, performance = np.array([[0], [1]]), np.array([1.0, 2.0])
    behaviour_map = BehaviourMap.from_arrays(cells, performance)
    performance[0] = cells[0] = 7
    assert behaviour_map.performance[0] == 1
    assert behaviour_map.cells[0, 0] == 0
    for array in (behaviour_map.cells, behaviour_map.performance, behaviour_map.descriptor):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3


def test_own_centroids_are_the_coordinates() -> None:
    behaviour_map = BehaviourMap(
        descriptor_name="custom",
        cells=[[2], [0]],  # type: ignore[arg-type]
        performance=[1, 2],  # type: ignore[arg-type]
        descriptor=[[0.5, 0.5], [0.1, 0.1]],  # type: ignore[arg-type]
        centroids=[[0, 0.1], [1, 1], [0.5, 0.6]],  # type: ignore[arg-type]
    )
    assert behaviour_map.coordinates.tolist() == [[0.5, 0.6], [0, 0.1]]
    assert_same(BehaviourMap.from_bytes(behaviour_map.to_bytes()), behaviour_map)


@pytest.mark.parametrize("rows", [0, 1, 2001, 2002, 4001, 20_001, 54_321])
def test_log_is_thinned_evenly_from_the_first_to_the_last(rows: int) -> None:
    log = random_log(np.random.default_rng(1), rows)
    kept = replace(synthetic_map(), log=log).log
    assert len(kept) <= 2001
    assert len(kept) >= min(rows, 1000)
    if rows:
        assert kept.generation[[0, -1]].tolist() == [0, rows - 1]
        assert len(set(np.diff(kept.generation)[:-1].tolist())) <= 1
        assert (kept.best == log.best[kept.generation]).all()
    if rows == 20_001:
        assert (kept.generation == np.arange(0, 20_001, 10)).all()


NAN = float("nan")
REFUSED_ARRAYS: list[tuple[str, Any, Any, str]] = [
    ("twice", [[0, 1], [2, 2], [0, 1]], [1, 2, 3], r"rows 0 and 2 are of the same cell \(0, 1\)"),
    ("one dimension", [1, 2, 3], [1, 2, 3], r"cells has the shape \(3,\)"),
    ("three dimensions", [[[1]]], [1], r"cells has the shape \(1, 1, 1\)"),
    ("nothing", np.zeros((0, 3), int), [], "there are 0 cells of 3"),
    ("no dimension", np.zeros((2, 0), int), [1, 2], "there are 2 cells of 0"),
    ("many dimensions", np.zeros((1, 65), int), [1], "1 to 64"),
    ("many cells", np.arange(2**16 + 1)[:, None], np.zeros(2**16 + 1), "1 to 65536"),
    ("fractions", [[0.5]], [1], "cells holds values of the type float64; give integers"),
    ("words", [["a"]], [1], "give integers"),
    ("truths", [[True]], [1], "give integers"),
    ("ragged", [[1, 2], [3]], [1, 2], "rows of different lengths"),
    ("negative", [[-1]], [1], "cells holds -1"),
    ("large", [[2**31]], [1], "cells holds 2147483648"),
    ("larger", [[2**64]], [1], "give integers"),
    ("NaN", [[0], [1]], [1, NAN], "performance holds a number that is not finite"),
    ("infinite", [[0], [1]], [1, -np.inf], "performance holds a number that is not finite"),
    ("huge", [[0]], [1e10], "or huge"),
    ("complex", [[0]], [1j], "give numbers"),
    ("few", [[0], [1]], [1], r"performance has the shape \(1,\); with 2 cells give 2"),
    ("column", [[0], [1]], [[1], [2]], r"performance has the shape \(2, 1\)"),
]


@pytest.mark.parametrize(
    ("cells", "performance", "words"),
    [case[1:] for case in REFUSED_ARRAYS],
    ids=[case[0] for case in REFUSED_ARRAYS],
)
def test_impossible_arrays_are_refused(cells: Any, performance: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        BehaviourMap.from_arrays(cells, performance)


REFUSED_CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "descriptor name": ({"descriptor_name": "xyz"}, "no descriptor 'xyz'; name one of hbd, sdbc"),
    "robots": ({"robots": 0}, "robots is 0"),
    "half a robot": ({"robots": 1.5}, "robots is 1.5"),
    "descriptor's rows": ({"descriptor": np.zeros((3, 3))}, "with 12 cells give 12 rows"),
    "descriptor's columns": ({"descriptor": np.zeros((12, 2))}, "3 columns of cells and 3 of"),
    "no descriptor": ({"descriptor": np.zeros((12, 0))}, "give 1 to 64"),
    "descriptor": ({"descriptor": np.full((12, 3), NAN)}, "descriptor holds"),
    "centroids": ({"centroids": np.zeros((20, 3))}, "not the number of a centroid"),
    "flat centroids": ({"centroids": np.zeros(3)}, r"centroids has the shape \(3,\)"),
    "other centroids": ({"centroids": np.zeros((20, 2))}, "give both the same"),
    "outside": ({"cells": np.arange(36).reshape(12, 3)}, "indices of hbd are 0 to 15"),
    "columns": ({"cells": np.arange(12)[:, None]}, "3 columns of cells"),
    "sdbc": ({"descriptor_name": "sdbc"}, "a map of sdbc has 1 columns"),
    "controllers": (
        {"genomes": Genomes.from_controllers([Controller(0, (0.0, 0.0), ())])},
        "there are 1 controllers; give 12",
    ),
    "made": ({"made": []}, r"made is \[\]"),
    "seed": ({"made": {"seed": -1}}, "seed is -1"),
    "evaluations": ({"made": {"evaluations": "many"}}, "evaluations is 'many'"),
    "options": ({"made": {"options": 3}}, "options is 3"),
    "versions": ({"made": {"versions": None}}, "versions is None"),
    "NaN": ({"made": {"a": [NAN]}}, "made holds nan"),
    "object": ({"made": {"a": Path()}}, "values that JSON has"),
    "names": ({"made": {1: 2}}, "name that is not text"),
    "integers": ({"made": {"a": 2**64}}, "more than 64 bits"),
    "depth": ({"made": {"a": [[[[[[[[1]]]]]]]]}}, "nested too deeply"),
}


@pytest.mark.parametrize(
    ("change", "words"), list(REFUSED_CHANGES.values()), ids=list(REFUSED_CHANGES)
)
def test_impossible_maps_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(synthetic_map(), **change)


def test_rows_out_of_order_are_refused() -> None:
    behaviour_map = synthetic_map()
    with pytest.raises(InputError, match="not in the order of their cells"):
        replace(behaviour_map, cells=behaviour_map.cells[::-1])


def test_sdbc_without_centroids_is_refused() -> None:
    with pytest.raises(InputError, match="needs its centroids"):
        replace(synthetic_map(descriptor="sdbc"), centroids=None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"generation": [0, 2, 1]}, "generations do not increase"),
        ({"evaluations": [3, 2, 1]}, "evaluations decrease"),
        ({"filled_cells": [0, -1, 2]}, "filled_cells holds -1"),
        ({"best": [0, NAN, 2]}, "best holds a number that is not finite"),
        ({"mean": [0, 1]}, r"mean has the shape \(2,\)"),
        ({"mean": [[0], [1], [2]]}, r"mean has the shape \(3, 1\)"),
    ],
)
def test_impossible_logs_are_refused(change: dict[str, Any], words: str) -> None:
    columns = {column.name: np.arange(3) for column in fields(Log)}
    with pytest.raises(InputError, match=words):
        Log(**columns | change)


# Files of strangers.

GOOD = synthetic_map().to_bytes()


def sealed(data: bytes) -> bytes:
    """Bytes with the checksum that they should have, as a forger would make it."""
    return data + blake2b(data, digest_size=32).digest()


def forged(
    change: Callable[[dict[str, Any]], Any] | None = None,
    header: bytes | None = None,
    payload: Callable[[bytes], bytes] = lambda payload: payload,
    packed: Callable[[bytes], bytes] = lambda packed: packed,
) -> bytes:
    """A map's file with something else in it, and a checksum that fits."""
    magic, old, rest = GOOD.split(b"\n", 2)
    if change is not None:
        value = json.loads(old)
        changed = change(value)
        value = value if changed is None else changed
        old = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    compressed = packed(zlib.compress(payload(zlib.decompress(rest[:-32])), 9))
    return sealed(magic + b"\n" + (old if header is None else header) + b"\n" + compressed)


def with_array(array: str, **change: Any) -> Callable[[dict[str, Any]], None]:
    """Change what the header says of one array."""

    def apply(header: dict[str, Any]) -> None:
        (entry,) = (entry for entry in header["arrays"] if entry[0] == array)
        names = ("name", "kind", "shape")
        entry[:] = [change.get(name, value) for name, value in zip(names, entry, strict=True)]

    return apply


def without_array(*names: str) -> Callable[[dict[str, Any]], None]:
    """Leave arrays out of the header."""

    def apply(header: dict[str, Any]) -> None:
        header["arrays"] = [entry for entry in header["arrays"] if entry[0] not in names]

    return apply


def with_value(**values: Any) -> Callable[[dict[str, Any]], None]:
    """Other values in the header."""
    return lambda header: header.update(values)


def at(name: str, index: int, value: Any) -> Callable[[bytes], bytes]:
    """Put another number into one of the arrays."""

    def apply(payload: bytes) -> bytes:
        start = 0
        for entry, kind, shape in json.loads(GOOD.split(b"\n")[1])["arrays"]:
            size = np.dtype(kind).itemsize
            if entry == name:
                place = start + index * size
                return payload[:place] + np.array(value, kind).tobytes() + payload[place + size :]
            start += size * int(np.prod(shape))
        raise KeyError(name)

    return apply


HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "is not a map"),
    "text": (b"hello", "is not a map"),
    "pickle": (pickle.dumps(Path("a")), "is not a map"),
    "another version": (b"swarmbo map 2\n", "another version of the format"),
    "magic only": (map_file.MAGIC, "is damaged"),
    "checksum only": (sealed(map_file.MAGIC), "no line of JSON"),
    "long header": (sealed(map_file.MAGIC + b" " * 2**20 + b" \n"), "no line of JSON"),
    "no JSON": (forged(header=b"{"), "not JSON"),
    "not text": (forged(header=b"\xff\xfe\x00"), "not JSON"),
    "deep": (forged(header=b"[" * 10**6), "not JSON"),
    "deep and closed": (forged(header=b"[" * 10**5 + b"]" * 10**5), "not JSON"),
    "long integer": (forged(header=b"9" * 10**5), "not JSON"),
    "NaN": (forged(with_value(robots=NAN)), "not JSON"),
    "infinity": (forged(header=b'{"robots":1e999}'), "not JSON"),
    "a list": (forged(header=b"[]"), "does not consist of"),
    "a name missing": (forged(lambda header: header.pop("made") and None), "does not consist of"),
    "a name more": (forged(with_value(x=1)), "does not consist of"),
    "spaces": (forged(header=b'{"arrays":[], "descriptor":0,"made":0,"robots":0}'), "canonical"),
    "a name twice": (
        forged(header=b'{"arrays":[],"descriptor":0,"made":0,"made":0,"robots":0}'),
        "canonical",
    ),
    "arrays a number": (forged(with_value(arrays=1)), r"arrays: 1 is not \[name"),
    "arrays empty": (forged(with_value(arrays=[])), "arrays: they are not cells"),
    "array a number": (forged(with_value(arrays=[1])), r"arrays: 1 is not \[name"),
    "array of two": (forged(with_value(arrays=[["cells", "<i4"]])), r"is not \[name"),
    "array without name": (forged(with_value(arrays=[[{}, "<i4", [1]]])), r"is not \[name"),
    "unknown array": (forged(with_array("cells", name="rows")), "is unknown"),
    "array twice": (forged(with_array("weight", name="bias")), "there twice"),
    "objects": (forged(with_array("bias", kind="|O")), "of a wrong type"),
    "type a list": (forged(with_array("bias", kind=["<f8"])), "of a wrong type"),
    "shape a number": (forged(with_array("bias", shape=9)), "impossible shape 9"),
    "shape of words": (forged(with_array("bias", shape=["9"])), "impossible shape"),
    "shape of truths": (forged(with_array("bias", shape=[True])), "impossible shape"),
    "shape negative": (forged(with_array("bias", shape=[-1])), "impossible shape"),
    "shape too deep": (forged(with_array("bias", shape=[9, 1])), "impossible shape"),
    "shape absurd": (forged(with_array("bias", shape=[10**30])), "impossible shape"),
    "shape large": (forged(with_array("bias", shape=[2**27])), "more than 134217728 bytes"),
    "cells many": (forged(with_array("cells", shape=[2**17, 3])), "cells has more than 65536"),
    "cells none": (forged(with_array("cells", shape=[0, 3])), "there are no cells"),
    "cells wide": (forged(with_array("cells", shape=[12, 2**27])), "more than 134217728 bytes"),
    "cells fewer": (forged(with_array("cells", shape=[11, 3])), "performance has 12 rows"),
    "log long": (forged(with_array("log_generation", shape=[2002])), "more than 2001"),
    "log uneven": (forged(with_array("log_mean", shape=[49])), "do not fill"),
    "array missing": (forged(without_array("performance")), "they are not"),
    "genes missing": (forged(without_array("bias", "weight")), "they are not"),
    "order": (forged(lambda header: header["arrays"].reverse()), "they are not"),
    "descriptor": (forged(with_value(descriptor="pickle")), "no descriptor 'pickle'"),
    "descriptor a list": (forged(with_value(descriptor=["hbd"])), r"no descriptor \['hbd'\]"),
    "robots none": (forged(with_value(robots=0)), "robots is 0"),
    "robots true": (forged(with_value(robots=True)), "robots is True"),
    "made a list": (forged(with_value(made=[])), "made is"),
    "made deep": (forged(with_value(made=json.loads('{"a":' * 20 + "1" + "}" * 20))), "deeply"),
    "seed": (forged(with_value(made={"seed": "1"})), "seed is '1'"),
    "not packed": (forged(packed=lambda packed: b"x" + packed), "cannot be unpacked"),
    "cut": (forged(packed=lambda packed: packed[:-1]), "do not fill"),
    "cut early": (forged(packed=lambda packed: packed[: len(packed) // 2]), "do not fill"),
    "more behind": (forged(packed=lambda packed: packed + b"x"), "do not fill"),
    "more inside": (forged(payload=lambda payload: payload + b"x"), "do not fill"),
    "less inside": (forged(payload=lambda payload: payload[:-1]), "do not fill"),
    "cell outside": (forged(payload=at("cells", 35, 16)), "indices of hbd"),
    "cell negative": (forged(payload=at("cells", 35, -1)), "cells holds -1"),
    "performance NaN": (forged(payload=at("performance", 0, NAN)), "performance holds"),
    "descriptor infinite": (forged(payload=at("descriptor", 0, np.inf)), "descriptor holds"),
    "weight NaN": (forged(payload=at("weight", 0, NAN)), r"controller \d+: .* nan"),
    "bias infinite": (forged(payload=at("bias", 0, np.inf)), "controller 0: bias 0 is inf"),
    "hidden more": (forged(payload=at("hidden", 0, 65)), "at most 64"),
    "hidden other": (forged(payload=at("hidden", 0, 60)), "the controllers need"),
    "connections more": (forged(payload=at("connections", 0, 257)), "at most 256"),
    "connections other": (forged(payload=at("connections", 0, 256)), "the controllers need"),
    "into an input": (forged(payload=at("target", 0, 3)), "goes into an input"),
    "no such neuron": (forged(payload=at("source", 0, 255)), "names neuron 255"),
    "log not in order": (forged(payload=at("log_generation", 0, 7)), "do not increase"),
    "log negative": (forged(payload=at("log_evaluations", 0, -7)), "evaluations holds -7"),
}


@pytest.mark.parametrize(("data", "words"), list(HOSTILE.values()), ids=list(HOSTILE))
def test_hostile_file_is_refused_by_name(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.map").write_bytes(data)
    with pytest.raises(InputError, match=rf"bad\.map: .*{words}") as caught:
        BehaviourMap.load(tmp_path / "bad.map")
    assert "\n" not in str(caught.value)


def test_file_of_these_tests_is_good_before_it_is_forged() -> None:
    assert forged() == GOOD
    assert_same(BehaviourMap.from_bytes(forged(lambda header: None)), synthetic_map())


@pytest.mark.parametrize("claimed", [12, 2**20])
def test_bomb_does_not_explode(claimed: int) -> None:
    bomb = forged(with_array("bias", shape=[claimed]), payload=lambda _: bytes(2**26))
    assert len(bomb) < 2**20
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="do not fill"):
            BehaviourMap.from_bytes(bomb)
        assert tracemalloc.get_traced_memory()[1] < 3 * 8 * claimed + 2**20
    finally:
        tracemalloc.stop()


def test_file_larger_than_any_map_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "large.map").open("wb") as file:
        file.write(map_file.MAGIC)
        file.truncate(2**40)
    with pytest.raises(InputError, match=r"large\.map: is larger than any map"):
        BehaviourMap.load(tmp_path / "large.map")


def test_file_cut_anywhere_is_refused() -> None:
    for length in range(len(GOOD)):
        with pytest.raises(InputError):
            BehaviourMap.from_bytes(GOOD[:length])


@settings(max_examples=150, deadline=None)
@given(place=st.integers(0, len(GOOD) - 1), flip=st.integers(1, 255))
def test_file_with_another_byte_is_refused(place: int, flip: int) -> None:
    altered = bytearray(GOOD)
    altered[place] ^= flip
    with pytest.raises(InputError):
        BehaviourMap.from_bytes(bytes(altered))


@settings(max_examples=100, deadline=None)
@given(place=st.integers(0, len(GOOD)), more=st.binary(min_size=1, max_size=40))
def test_file_with_more_in_it_is_refused(place: int, more: bytes) -> None:
    with pytest.raises(InputError):
        BehaviourMap.from_bytes(GOOD[:place] + more + GOOD[place:])


def load_or_refuse(data: bytes) -> None:
    """Bytes are a map that can be saved again, or refused; nothing else may happen."""
    try:
        behaviour_map = BehaviourMap.from_bytes(data)
    except InputError:
        return
    assert_same(BehaviourMap.from_bytes(behaviour_map.to_bytes()), behaviour_map)
    assert len(behaviour_map.controllers()) == behaviour_map.filled_cells
    json.dumps([behaviour_map.best, behaviour_map.mean, behaviour_map.made], allow_nan=False)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200))
def test_random_bytes_never_do_harm(data: bytes) -> None:
    load_or_refuse(data)
    load_or_refuse(sealed(map_file.MAGIC + data))
    load_or_refuse(forged(header=data.replace(b"\n", b" ")))
    load_or_refuse(forged(packed=lambda _: data))


@settings(max_examples=150, deadline=None)
@given(edits=st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=4))
def test_forged_numbers_never_do_harm(edits: list[tuple[int, int]]) -> None:
    def edit(payload: bytes) -> bytes:
        altered = bytearray(payload)
        for place, value in edits:
            altered[place % len(altered)] = value
        return bytes(altered)

    load_or_refuse(forged(payload=edit))
    load_or_refuse(forged(packed=edit))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(name=st.sampled_from(["arrays", "descriptor", "made", "robots"]), value=JSON)
def test_forged_headers_never_do_harm(name: str, value: Any) -> None:
    load_or_refuse(forged(with_value(**{name: value})))


@settings(max_examples=100, deadline=None)
@given(
    number=st.integers(0, 13),
    entry=st.tuples(JSON, JSON, JSON)
    | st.tuples(
        st.sampled_from(["cells", "bias", "hidden", "centroids"]),
        st.sampled_from(["<i4", "<f8", "|u1", "|O", "<M8[s]"]),
        st.lists(st.integers(-1, 70), max_size=3),
    ),
)
def test_forged_shapes_never_do_harm(number: int, entry: tuple[Any, Any, Any]) -> None:
    def change(header: dict[str, Any]) -> None:
        header["arrays"][number] = list(entry)

    load_or_refuse(forged(change))


# Names.


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the maps that come with swarmbo; the working folder is another."""
    folder, elsewhere = tmp_path / "shelf", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(module, "files", lambda package: {"swarmbo.maps": folder}[package])
    synthetic_map(1).save(folder / "paper-1.map")
    synthetic_map(2).save(folder / "paper-2.map")
    (folder / "__init__.py").touch()
    return folder


def test_map_shows_itself_in_a_line() -> None:
    shown = "<BehaviourMap hbd, filled_cells=508, best=5.23, mean=1.82>"
    assert repr(BehaviourMap.load("paper-1")) == shown


@pytest.mark.usefixtures("shelf")
def test_bundled_map_is_loaded_by_its_name() -> None:
    assert bundled_maps() == ["paper-1", "paper-2"]
    assert_same(load_map("paper-2"), synthetic_map(2))


@pytest.mark.usefixtures("shelf")
def test_file_wins_over_a_bundled_map_and_a_folder_does_not() -> None:
    synthetic_map(7).save("paper-1")
    Path("paper-2").mkdir()
    assert_same(load_map("paper-1"), synthetic_map(7))
    assert_same(load_map("paper-2"), synthetic_map(2))


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize("name", ["best", "paper-1.map", "", "\0", "__init__"])
def test_unknown_name_lists_the_bundled_maps(name: str) -> None:
    with pytest.raises(InputError, match="paper-1, paper-2"):
        load_map(name)


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize("name", ["./paper-1", "../shelf/paper-1", "no/such.map", "a/\0"])
def test_path_is_never_a_bundled_name(name: str) -> None:
    with pytest.raises(InputError, match=r": (there is no such file|is not a file name)"):
        load_map(name)


def test_folder_and_device_are_no_maps(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        load_map(tmp_path)
    if Path("/dev/zero").exists():
        with pytest.raises(InputError, match="/dev/zero: is not a plain file"):
            load_map("/dev/zero")


def test_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.map"
    synthetic_map(1).save(path)

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        synthetic_map(2).save(path)
    assert_same(load_map(path), synthetic_map(1))
    assert list(tmp_path.iterdir()) == [path]


def test_map_too_large_for_a_file_is_refused() -> None:
    made = {"options": {"note": "x" * 2**20}}
    with pytest.raises(InputError, match="too large for a file"):
        replace(synthetic_map(), made=made).to_bytes()


def test_bundled_maps_of_the_package_can_be_loaded() -> None:
    for name in bundled_maps():
        assert load_map(name).genomes is not None
