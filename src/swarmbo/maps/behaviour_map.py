"""Behaviour-performance maps: the best controller of every kind of behaviour."""

import json
import os
from dataclasses import dataclass, field, fields
from importlib.resources import as_file, files
from typing import Any

import numpy as np

from swarmbo.controller.genomes import Genomes
from swarmbo.controller.network import Controller
from swarmbo.errors import InputError, cut, is_finite_number, is_integer, naming, short
from swarmbo.files import is_file, whole_file
from swarmbo.maps import map_file
from swarmbo.maps.map_file import LOG_ROWS, MAX_CELLS

GRID = 16  # cells along each dimension of the HBD grid
HBD_DIMENSIONS = 3
SDBC_DIMENSIONS = 10
DESCRIPTOR_NAMES = ("hbd", "sdbc", "custom")

MAX_DIMENSIONS = 64
MAX_ROBOTS = 10_000
MAX_NUMBER = 1e9  # of performance, descriptor and log: sums stay finite
MAX_NESTING = 8  # of `made`


@dataclass(frozen=True, eq=False)
class Log:
    """The course of evolution, a row per generation that was logged; 0 is the random one.

    Best and mean over the filled cells are in items per robot.
    """

    generation: np.ndarray  # int64, increasing
    evaluations: np.ndarray  # int64: done so far
    filled_cells: np.ndarray  # int64
    best: np.ndarray  # float64
    mean: np.ndarray  # float64

    def __post_init__(self) -> None:
        for column in fields(self):
            what, values = f"the log's {column.name}", getattr(self, column.name)
            counts = column.name not in ("best", "mean")
            values = _counts(what, values, np.int64) if counts else _numbers(what, values)
            if values.ndim != 1 or len(values) != np.size(self.generation):
                raise InputError(
                    f"{what} has the shape {values.shape}; give every column one value per row"
                )
            object.__setattr__(self, column.name, values)
        if (np.diff(self.generation) <= 0).any():
            raise InputError("the log's generations do not increase; give each one once, in order")
        if (np.diff(self.evaluations) < 0).any():
            raise InputError("the log's evaluations decrease; give those done so far")

    def __len__(self) -> int:
        return len(self.generation)

    @classmethod
    def empty(cls) -> "Log":
        """A log without rows, of a map that was not evolved."""
        return cls(*(np.zeros(0, np.int64) for _ in range(3)), *(np.zeros(0) for _ in range(2)))

    def thinned(self) -> "Log":
        """At most 2,001 rows: every second, third, ... one, always with the first and the last."""
        if len(self) <= LOG_ROWS:
            return self
        step = -(-(len(self) - 1) // (LOG_ROWS - 1))
        kept = np.union1d(np.arange(0, len(self), step), len(self) - 1)
        return Log(*(getattr(self, column.name)[kept] for column in fields(self)))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BehaviourMap:
    """Filled cells of a space of behaviours, a row each: behaviour, performance, controller.

    A map of "hbd" has three indices of 0 to 15 per cell, one of "sdbc" the number
    of a centroid; rows are in the order of their cells, the first dimension
    slowest. One of "custom" may have any cells in any order. All arrays but
    those of the genomes are copied, and cannot be written to.
    """

    descriptor_name: str  # "hbd", "sdbc" or "custom"
    cells: np.ndarray  # cells x dimensions, int32: place in the grid, or number of the centroid
    performance: np.ndarray  # cells: items of all robots, mean over the trials
    descriptor: np.ndarray  # cells x numbers: the behaviour as it was measured
    genomes: Genomes | None = None  # the controllers, if known
    robots: int = 6  # of the swarm whose performance it is
    centroids: np.ndarray | None = None  # all centroids x numbers; None for a grid
    made: dict[str, Any] = field(default_factory=dict)  # options, seed, versions, evaluations
    log: Log = field(default_factory=Log.empty)  # thinned to 2,001 rows

    def __post_init__(self) -> None:
        if self.descriptor_name not in DESCRIPTOR_NAMES:
            raise InputError(
                f"there is no descriptor {short(self.descriptor_name)}; "
                f"name one of {', '.join(DESCRIPTOR_NAMES)}"
            )
        if not is_integer(self.robots) or not 1 <= self.robots <= MAX_ROBOTS:
            raise InputError(f"robots is {short(self.robots)}; give an integer, 1 to {MAX_ROBOTS}")
        cells = _checked_cells(self.cells)
        rows = len(cells)
        performance = _numbers("performance", self.performance)
        descriptor = _numbers("descriptor", self.descriptor)
        if performance.shape != (rows,):
            raise InputError(
                f"performance has the shape {performance.shape}; "
                f"with {rows} cells give {rows} numbers"
            )
        if descriptor.ndim != 2 or len(descriptor) != rows:
            raise InputError(
                f"descriptor has the shape {descriptor.shape}; "
                f"with {rows} cells give {rows} rows of numbers"
            )
        if not 1 <= descriptor.shape[1] <= MAX_DIMENSIONS:
            raise InputError(
                f"descriptor has {descriptor.shape[1]} columns; give 1 to {MAX_DIMENSIONS}"
            )
        if self.centroids is not None:
            centroids = _numbers("centroids", self.centroids)
            _check_centroids(cells, descriptor, centroids)
            object.__setattr__(self, "centroids", centroids)
        if self.descriptor_name != "custom":
            self._check_known(cells, descriptor)
        if self.genomes is not None:
            if len(self.genomes) != rows:
                raise InputError(
                    f"there are {len(self.genomes)} controllers; give {rows}, one per cell"
                )
            self.genomes.check()
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "performance", performance)
        object.__setattr__(self, "descriptor", descriptor)
        object.__setattr__(self, "made", _checked_made(self.made))
        object.__setattr__(self, "log", self.log.thinned())

    def _check_known(self, cells: np.ndarray, descriptor: np.ndarray) -> None:
        """InputError when the map is not what its descriptor's name promises."""
        hbd = self.descriptor_name == "hbd"
        columns, numbers = (HBD_DIMENSIONS,) * 2 if hbd else (1, SDBC_DIMENSIONS)
        if (cells.shape[1], descriptor.shape[1]) != (columns, numbers):
            raise InputError(
                f"a map of {self.descriptor_name} has {columns} columns of cells and {numbers} of "
                f"descriptor, not {cells.shape[1]} and {descriptor.shape[1]}; "
                "correct them, or name the descriptor custom"
            )
        if hbd and cells.max() >= GRID:
            raise InputError(
                f"row {int(cells.max(axis=1).argmax())} has the cell index {cells.max()}; "
                f"the indices of hbd are 0 to {GRID - 1}"
            )
        if hbd == (self.centroids is not None):
            raise InputError(
                "a map of hbd has no centroids; leave them out"
                if hbd
                else "a map of sdbc needs its centroids; give them"
            )
        order = np.lexsort(cells.T[::-1])
        if (order != np.arange(len(cells))).any():
            raise InputError(
                "the rows are not in the order of their cells; "
                "sort them, the first dimension slowest"
            )

    def __repr__(self) -> str:
        numbers = f"filled_cells={self.filled_cells}, best={self.best:.2f}, mean={self.mean:.2f}"
        return f"<BehaviourMap {self.descriptor_name}, {numbers}>"

    @property
    def coordinates(self) -> np.ndarray:
        """Cells x dimensions: where a cell lies. Index / 16, or the centroid."""
        if self.centroids is None:
            return self.cells / GRID
        return self.centroids[self.cells[:, 0]]

    @property
    def filled_cells(self) -> int:
        """How many cells are filled."""
        return len(self.cells)

    @property
    def best(self) -> float:
        """The best performance, in items per robot."""
        return float(self.performance.max()) / self.robots

    @property
    def mean(self) -> float:
        """The mean performance over the filled cells, in items per robot."""
        return float(self.performance.mean()) / self.robots

    def controllers(self) -> list[Controller]:
        """The controllers, in the order of the rows."""
        if self.genomes is None:
            raise InputError("the map holds no controllers; use one that was saved with them")
        return self.genomes.controllers()

    @classmethod
    def from_arrays(
        cls,
        cells: Any,
        performance: Any,
        *,
        genomes: Genomes | None = None,
        robots: int = 6,
    ) -> "BehaviourMap":
        """A map of your own: integer cells (n x dimensions) and performances, rows as given.

        A cell's coordinate is its index / 16. Performance is in items of all
        robots. Without `genomes` the map has no controllers.
        """
        checked = _checked_cells(cells)
        return cls(
            descriptor_name="custom",
            cells=checked,
            performance=performance,
            descriptor=checked / GRID,
            genomes=genomes,
            robots=robots,
        )

    @classmethod
    def load(cls, name: str | os.PathLike[str]) -> "BehaviourMap":
        """The map in a file, or the one of that name that comes with swarmbo.

        A file wins over a bundled map; InputError when it is not a map, damaged
        or impossible.
        """
        text = os.fspath(name)
        is_path = os.sep in text or (os.altsep or os.sep) in text or is_file(text)
        if not is_path and text in bundled_maps():
            with as_file(files("swarmbo.maps") / f"{text}.map") as path:
                return cls._load(path)
        if not is_path and not os.path.lexists(text):
            names = bundled_maps()
            remedy = f"name a file, or one of {', '.join(names)}" if names else "check the path"
            raise InputError(f"{cut(text)}: is neither a file nor a bundled map; {remedy}")
        return cls._load(text)

    @classmethod
    def _load(cls, path: str | os.PathLike[str]) -> "BehaviourMap":
        with naming(path):
            return cls.from_bytes(map_file.read(path))

    def save(self, path: str | os.PathLike[str], *, replace: bool = True) -> None:
        """Write the map to a file, whole or not at all. Equal maps give equal files.

        Without `replace` a file that is there stays; FileExistsError then.
        """
        data = self.to_bytes()
        with whole_file(path, replace=replace) as temporary:
            temporary.write_bytes(data)

    def to_bytes(self) -> bytes:
        """The content of the map's file."""
        header = {"descriptor": self.descriptor_name, "robots": self.robots, "made": self.made}
        columns = {name: getattr(self, name) for name in ("cells", "performance", "descriptor")}
        if self.centroids is not None:
            columns["centroids"] = self.centroids
        if self.genomes is not None:
            columns |= map_file.ragged(self.genomes)
        for column in fields(Log):
            columns[f"log_{column.name}"] = getattr(self.log, column.name)
        return map_file.pack(header, columns)

    @classmethod
    def from_bytes(cls, data: bytes) -> "BehaviourMap":
        """The map in the content of a file; InputError when it is not one."""
        header, arrays = map_file.unpack(data)
        return cls(
            descriptor_name=header["descriptor"],
            robots=header["robots"],
            made=header["made"],
            cells=arrays["cells"],
            performance=arrays["performance"],
            descriptor=arrays["descriptor"],
            centroids=arrays.get("centroids"),
            genomes=map_file.dense(arrays) if "hidden" in arrays else None,
            log=Log(*(arrays[f"log_{column.name}"] for column in fields(Log))),
        )


def load_map(name: str | os.PathLike[str]) -> BehaviourMap:
    """The map in a file, or the one of that name that comes with swarmbo."""
    return BehaviourMap.load(name)


def bundled_maps() -> list[str]:
    """The names of the maps that come with swarmbo."""
    names = (entry.name for entry in files("swarmbo.maps").iterdir())
    return sorted(name.removesuffix(".map") for name in names if name.endswith(".map"))


# Checks, for values from anywhere.


def _regular(what: str, values: Any, kinds: str, wanted: str) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{what} has rows of different lengths; give a regular array") from None
    if array.dtype.kind not in kinds:
        raise InputError(f"{what} holds values of the type {array.dtype}; give {wanted}")
    return array


def _counts(what: str, values: Any, kind: type[np.int32] | type[np.int64]) -> np.ndarray:
    """An unwritable copy of integers from 0 on; InputError when they are not."""
    array = _regular(what, values, "iu", "integers")
    most = np.iinfo(kind).max
    for value in (array.min(), array.max()) if array.size else ():
        if not 0 <= value <= most:
            raise InputError(f"{what} holds {value}; give integers of 0 to {most}")
    array = np.array(array, dtype=kind, order="C")
    array.setflags(write=False)
    return array


def _numbers(what: str, values: Any) -> np.ndarray:
    """An unwritable copy of numbers as float64; InputError when they are not finite."""
    array = np.array(_regular(what, values, "iuf", "numbers"), dtype=np.float64, order="C")
    if not (np.abs(array) <= MAX_NUMBER).all():
        raise InputError(
            f"{what} holds a number that is not finite, or huge; "
            f"give numbers of -{MAX_NUMBER:g} to {MAX_NUMBER:g}"
        )
    array.setflags(write=False)
    return array


def _checked_cells(values: Any) -> np.ndarray:
    """Cells as an unwritable int32 array; InputError when a map cannot have them."""
    cells = _counts("cells", values, np.int32)
    if cells.ndim != 2:
        raise InputError(
            f"cells has the shape {cells.shape}; give a row per cell and a column per dimension"
        )
    if not 1 <= len(cells) <= MAX_CELLS or not 1 <= cells.shape[1] <= MAX_DIMENSIONS:
        raise InputError(
            f"there are {len(cells)} cells of {cells.shape[1]} dimensions; "
            f"give 1 to {MAX_CELLS} of 1 to {MAX_DIMENSIONS}"
        )
    order = np.lexsort(cells.T[::-1])
    twice = np.flatnonzero((cells[order][1:] == cells[order][:-1]).all(axis=1))
    if twice.size:
        first, second = sorted(order[twice[0] : twice[0] + 2].tolist())
        raise InputError(
            f"rows {first} and {second} are of the same cell {tuple(cells[first].tolist())}; "
            "give each cell once"
        )
    return cells


def _check_centroids(cells: np.ndarray, descriptor: np.ndarray, centroids: np.ndarray) -> None:
    count = len(centroids) if centroids.ndim else 0
    if centroids.ndim != 2 or not 1 <= count <= MAX_CELLS:
        raise InputError(
            f"centroids has the shape {centroids.shape}; "
            f"give a row per centroid, 1 to {MAX_CELLS} of them"
        )
    if centroids.shape[1] != descriptor.shape[1]:
        raise InputError(
            f"a centroid has {centroids.shape[1]} numbers, a descriptor {descriptor.shape[1]}; "
            "give both the same"
        )
    if cells.shape[1] != 1 or cells.max() >= count:
        raise InputError(
            f"a cell is not the number of a centroid; give one number of 0 to {count - 1} each"
        )


def _checked_made(made: Any) -> dict[str, Any]:
    """A copy of `made` in plain JSON values; InputError when it is not made of them."""
    if not isinstance(made, dict):
        raise InputError(f"made is {short(made)}; give an object")
    _check_plain(made, MAX_NESTING)
    for name in ("evaluations", "seed"):
        if made.get(name) is not None and (not is_integer(made[name]) or made[name] < 0):
            raise InputError(f"made: {name} is {short(made[name])}; give a count")
    for name in ("options", "versions"):
        if not isinstance(made.get(name, {}), dict):
            raise InputError(f"made: {name} is {short(made[name])}; give an object")
    return json.loads(map_file.canonical(made))


def _check_plain(value: Any, depth: int) -> None:
    if value is None or isinstance(value, str | bool):
        return
    if is_integer(value):
        if -(2**63) <= value < 2**64:
            return
        raise InputError("made holds an integer of more than 64 bits; give smaller ones")
    if isinstance(value, float):
        if is_finite_number(value):
            return
        raise InputError(f"made holds {value}; give finite numbers")
    if not isinstance(value, dict | list | tuple):
        raise InputError(f"made holds {short(value)}; give values that JSON has")
    if depth == 0:
        raise InputError(f"made is nested too deeply; at most {MAX_NESTING} levels are possible")
    if isinstance(value, dict) and not all(isinstance(name, str) for name in value):
        raise InputError("made holds an object with a name that is not text; give texts")
    for entry in value.values() if isinstance(value, dict) else value:
        _check_plain(entry, depth - 1)
