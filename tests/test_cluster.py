"""Studies on the workers of a Dask cluster, which are real processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

import pytest

from swarmbo import InputError
from swarmbo.study import campaign, units
from swarmbo.study.campaign import Watcher, run_study
from swarmbo.study.journal import FinishedRun, load_results
from tests.command import swarmbo
from tests.studies import ENVIRONMENT, RUNS, STUDY, assert_equal_studies, read_study, write_study

distributed = pytest.importorskip("distributed")
psutil = pytest.importorskip("psutil")


def worker_processes() -> list[int]:
    """The processes of the workers that this process has started."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if "spawn_main" in " ".join(child.cmdline()):
                found.append(child.pid)
        except psutil.Error:  # it has just ended
            continue
    return found


class Killer(Watcher):
    """Kills a worker as soon as there is a first result, and sees which ones there are later."""

    def __init__(self) -> None:
        self.before: set[int] = set()
        self.after: set[int] = set()

    def finished(self, run: FinishedRun) -> None:
        if not self.before:
            self.before = set(worker_processes())
            for victim in self.before:  # all that are busy: none of their work is left
                os.kill(victim, signal.SIGKILL)
        self.after |= set(worker_processes()) - self.before


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_killed_workers_are_replaced_and_journals_equal_those_of_one_process(
    tmp_path: Path,
) -> None:
    definition = read_study(tmp_path)
    run_study(definition, tmp_path / "one", threads=1, device="cpu")
    run_study(definition, tmp_path / "four", threads=4, device="cpu")
    killer = Killer()
    run_study(definition, tmp_path / "dask", dask="local:2", device="cpu", watcher=killer)
    assert len(killer.before) == 2
    assert killer.after
    assert_equal_studies(tmp_path / "one", tmp_path / "four")
    assert_equal_studies(tmp_path / "one", tmp_path / "dask")
    assert load_results(tmp_path / "dask").about["options"][0]["dask"] == "local:2"
    time.sleep(0.1)
    assert not worker_processes()


def test_running_cluster_continues_what_threads_began(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_study(tmp_path)
    begun = swarmbo(
        capsys,
        "study",
        "run",
        path,
        "--out",
        tmp_path / "out",
        "--conditions",
        1,
        "--device",
        "cpu",
    )
    assert begun.code == 0
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tcp://")
        outcome = swarmbo(
            capsys, "study", "run", path, "--out", tmp_path / "out", "--dask", address
        )
    assert (outcome.code, outcome.stderr) == (0, "")
    assert f"{RUNS // 2} runs in " in outcome.stdout
    run_study(read_study(tmp_path), tmp_path / "whole", threads=1, device="cpu")
    assert_equal_studies(tmp_path / "out", tmp_path / "whole")


def test_cluster_without_workers_is_waited_for_and_this_is_said(tmp_path: Path) -> None:
    path = write_study(tmp_path)
    with distributed.LocalCluster(
        n_workers=0, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        command = ["study", "run", str(path), "--out", str(tmp_path / "out"), "--dask"]
        process = subprocess.Popen(
            [sys.executable, "-m", "swarmbo", *command, cluster.scheduler_address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        deadline = Timer(300, process.kill)
        deadline.start()
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said == "the scheduler has no workers; waiting until there are some\n"
            assert process.poll() is None
            cluster.scale(1)
            output, more = process.communicate()
        finally:
            deadline.cancel()
            process.kill()
    assert (process.returncode, more) == (0, "the scheduler has 1 worker now\n")
    assert f"{RUNS} runs in " in output
    run_study(read_study(tmp_path), tmp_path / "one", threads=2, device="cpu")
    assert_equal_studies(tmp_path / "out", tmp_path / "one")


def test_mistake_of_a_worker_is_a_sentence(tmp_path: Path) -> None:
    """Here: workers of another version."""
    definition = read_study(tmp_path)
    (unit, *_) = units.make_units(
        definition, list(definition.runs), [], device="cpu", cells={"one.map": 12, "two.map": 12}
    )
    other = unit._replace(versions=dict(unit.versions) | {"numpy": "0.0.1"})
    with pytest.raises(InputError, match=r"a worker has numpy .*, not 0\.0\.1; install the same"):
        units.work(other, {})


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("local:0", "--dask: 'local:0' is not local:N; give the number of worker processes"),
        ("local:many", "--dask: 'local:many' is not local:N"),
        ("somewhere", "--dask: 'somewhere' is no address; give one like tcp://"),
        ("tcp://127.0.0.1:1", "--dask: no scheduler answers at tcp://127.0.0.1:1; start one"),
    ],
)
def test_wrong_address_is_refused(
    address: str,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("swarmbo.study.cluster.PATIENCE", 0.5)
    path = write_study(tmp_path, STUDY)
    outcome = swarmbo(capsys, "study", "run", path, "--out", tmp_path / "out", "--dask", address)
    assert outcome.code == 2
    assert words in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_threads_and_dask_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="either threads or dask"):
        campaign.run_study(read_study(tmp_path), tmp_path / "out", threads=1, dask="local:1")
