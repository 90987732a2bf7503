"""How many pages of `swarmbo play` keep up, measured with real WebSocket clients.

    python benchmarks/play.py                          # 20 pages at real time
    python benchmarks/play.py --pages 20 --speed 20
    python benchmarks/play.py --pages 1 --speed 0      # as fast as the engine goes
    python benchmarks/play.py --rushing 4              # while others are in a hurry

The server is a process of its own, as a user starts it; all clients share another
process. A page keeps up when its swarm has run for as long as the clock says.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from websockets.asyncio.client import connect

SOURCE = Path(__file__).parent.parent / "src"
SETTLING = 2.0  # s before it counts


async def visit(address: str, speed: float, seconds: float) -> dict[str, float]:
    """Watch a page's swarm: its mean speed, and the time between pictures."""
    frames: list[tuple[float, int]] = []
    size = 0
    where = address.replace("http", "ws", 1) + "swarm"
    async with connect(where, origin=address.rstrip("/"), compression=None) as socket:  # type: ignore[arg-type]
        await socket.send(json.dumps({"type": "speed", "factor": speed or None}))
        start = perf_counter() + SETTLING
        while (now := perf_counter()) < start + seconds:
            text = await socket.recv()
            if now >= start:
                size += len(text)
                message: dict[str, Any] = json.loads(text)
                if message["type"] == "frame":
                    frames.append((perf_counter(), message["tick"]))
    times = np.array([time for time, _ in frames])
    run = (frames[-1][1] - frames[0][1]) * 0.2
    gaps = np.diff(times)
    return {
        "factor": run / (times[-1] - times[0]),
        "frames": len(gaps) / (times[-1] - times[0]),
        "worst": float(gaps.max()),
        "late": float(np.percentile(gaps, 99)),
        "rate": size / seconds,
    }


def processor_seconds(process: int) -> float:
    """How long a process has had a processor, on Linux."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(
    address: str, pages: int, speed: float, rushing: int, seconds: float
) -> list[dict[str, float]]:
    """What the pages see; `rushing` more ones, as fast as possible, do not count."""
    speeds = [speed] * pages + [0.0] * rushing
    found = await asyncio.gather(*(visit(address, each, seconds) for each in speeds))
    return found[:pages]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--speed", type=float, default=1.0, help="times real time; 0 is the most")
    parser.add_argument("--rushing", type=int, default=0, help="more pages, as fast as possible")
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "swarmbo", "play", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().split()[0]
            before, started = processor_seconds(server.pid), perf_counter()
            found = asyncio.run(
                measure(address, given.pages, given.speed, given.rushing, given.seconds)
            )
            share = (processor_seconds(server.pid) - before) / (perf_counter() - started)
        finally:
            server.terminate()
    columns = {name: np.array([page[name] for page in found]) for name in found[0]}
    asked = f"{given.speed:g}x" if given.speed else "as fast as possible"
    others = f", {given.rushing} others in a hurry" if given.rushing else ""
    print(f"{given.pages} pages, {asked}{others}, {os.cpu_count()} cores, {given.seconds:g} s")
    print(f"speed: {columns['factor'].mean():.4g}x, slowest page {columns['factor'].min():.4g}x")
    print(
        f"pictures: {columns['frames'].mean():.1f} per second; 99 % within "
        f"{1000 * columns['late'].max():.0f} ms, worst gap {1000 * columns['worst'].max():.0f} ms"
    )
    print(f"server: {share:.2f} cores, {columns['rate'].sum() / 1000:.0f} kB/s")


if __name__ == "__main__":
    main()
