"""The package as a whole: quick to import, complete, and of one version."""

import subprocess
import sys
from importlib.resources import files

import pytest

import swarmbo
from tests.command import PATIENCE


def in_new_process(code: str) -> str:
    """What a fresh interpreter prints when it runs `code`."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    return done.stdout.strip()


def test_import_takes_less_than_half_a_second_of_a_core() -> None:
    seconds = in_new_process(
        "from time import process_time as now; start = now(); import swarmbo; print(now() - start)"
    )
    assert float(seconds) < 0.5


@pytest.mark.parametrize("heavy", ["numba", "numpy", "pandas", "pyarrow", "typer"])
def test_import_leaves_heavy_packages_alone(heavy: str) -> None:
    assert in_new_process(f"import swarmbo, sys; print({heavy!r} in sys.modules)") == "False"


def test_world_and_controllers_do_not_need_numba() -> None:
    code = (
        "import sys, swarmbo; swarmbo.Scenario.draw(seed=1); swarmbo.bundled_controllers('example')"
        "; print('numba' in sys.modules)"
    )
    assert in_new_process(code) == "False"


@pytest.mark.parametrize("name", swarmbo.__all__)
def test_public_name_is_there_and_listed(name: str) -> None:
    assert getattr(swarmbo, name) is not None
    assert name in dir(swarmbo)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = swarmbo.no_such_name


def test_package_is_typed_and_ships_its_controllers() -> None:
    home = files("swarmbo")
    assert (home / "py.typed").is_file()
    assert len(swarmbo.bundled_controllers("recorded")) == 78
    assert len(swarmbo.bundled_controllers("example")) == 6


def test_unknown_bundled_set_is_refused_by_name() -> None:
    with pytest.raises(swarmbo.InputError, match=r"'best'.*example, recorded"):
        swarmbo.bundled_controllers("best")
