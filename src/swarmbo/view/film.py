"""A recovery as a film (GIF, MP4) or a picture (PNG): the files; `stage` draws what is in them."""

import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from swarmbo.errors import InputError
from swarmbo.view.footage import Footage
from swarmbo.view.stage import WIDTH, Stage, mixed, ramp, rgb

MAX_GIF = 5_000_000  # bytes
GIF_TRIES = ((960, 12.5), (880, 10.0), (800, 10.0), (720, 8.0), (640, 6.25), (480, 5.0))
GIF_SECONDS = (11.0, 11.0)  # learning, and after it
VIDEO_SECONDS = (24.0, 24.0)
VIDEO_RATE = 20  # frames per second
PICTURE_WIDTH = 1920
PICTURE_MOMENT = 0.55  # share of the trial
PICTURE_TRAIL = 22.0  # in a picture


def check_video() -> None:
    """InputError when there is nothing that can write MP4."""
    if find_spec("av") is None and shutil.which("ffmpeg") is None:
        raise InputError(
            "an MP4 film needs PyAV or ffmpeg; pip install av, put ffmpeg on the PATH, "
            "or let the name end in .gif"
        )


def write_film(footage: Footage, path: Path, kind: str, scheme: str) -> dict[str, Any]:
    """Write a film ("gif", "mp4") or a picture ("png"); returns its size in pixels and seconds."""
    if kind == "png":
        stage = Stage(footage, scheme, PICTURE_WIDTH)
        picture = stage.picture(len(footage.tries), PICTURE_MOMENT, PICTURE_TRAIL)
        picture.save(path, "PNG", optimize=True)
        return {"size": picture.size}
    if kind == "mp4":
        stage = Stage(footage, scheme, WIDTH)
        count = _write_video(path, stage.film(VIDEO_SECONDS, VIDEO_RATE), stage.size)
        return {"size": stage.size, "seconds": count / VIDEO_RATE}
    for width, rate in GIF_TRIES:
        stage = Stage(footage, scheme, width)
        count = _write_gif(path, stage, rate)
        if path.stat().st_size <= MAX_GIF:
            return {"size": stage.size, "seconds": count / rate}
    raise InputError(
        f"a GIF of this recovery would have more than {MAX_GIF // 10**6} MB; "
        "let the name end in .mp4 or .html"
    )


def _write_gif(path: Path, stage: "Stage", rate: float) -> int:
    table = _gif_colours(stage.colours)
    frames = [
        frame.quantize(palette=table, dither=Image.Dither.NONE)
        for frame in stage.film(GIF_SECONDS, rate)
    ]
    pauses = [round(1000 / rate)] * len(frames)
    pauses[-1] = 2500  # what came out stays for a while
    frames[0].save(
        path,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=pauses,
        loop=0,
        optimize=True,  # what does not change becomes transparent
        disposal=1,
    )
    return len(frames)


def _gif_colours(colours: dict[str, str]) -> Image.Image:
    """One table of colours for all frames: what does not change between two takes no room.

    It has the colours of the scheme, the map's ramp, and what lies between inks
    and grounds: edges and trails.
    """
    robots = ("healthy", "faulty", "lost", "item")
    inks = (*robots, "ink", "quiet", "foodLine", "wall", "before", "fault", "best")
    found = [rgb(colour) for colour in colours.values()]
    found += ramp("performance", np.linspace(0, 1, 33))
    for ground in ("page", "floor", "food", "nest"):
        found += [
            mixed(colours[ground], colours[ink], part / 4) for ink in inks for part in (1, 2, 3)
        ]
    unique = list(dict.fromkeys(found))[:255]  # one is left for what does not change
    table = Image.new("P", (1, 1))
    table.putpalette([part for colour in unique for part in colour])
    return table


def _write_video(path: Path, frames: Iterator[Image.Image], size: tuple[int, int]) -> int:
    return (_with_av if find_spec("av") else _with_ffmpeg)(path, frames, size)


def _with_av(path: Path, frames: Iterator[Image.Image], size: tuple[int, int]) -> int:
    import av

    count = 0
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=VIDEO_RATE)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "21", "preset": "veryfast", "movflags": "+faststart"}
        for frame in frames:
            image: Any = av.VideoFrame.from_ndarray(np.asarray(frame), format="rgb24")
            container.mux(stream.encode(image))
            count += 1
        container.mux(stream.encode())
    return count


def _with_ffmpeg(path: Path, frames: Iterator[Image.Image], size: tuple[int, int]) -> int:
    command = ["ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{size[0]}x{size[1]}", "-r", str(VIDEO_RATE), "-i", "-"]
    command += [
        "-c:v",
        "libx264",
        "-preset",
        "veryfast",
        "-crf",
        "21",
        "-pix_fmt",
        "yuv420p",
        "-movflags",
        "+faststart",
    ]
    process = subprocess.Popen([*command, "-f", "mp4", str(path)], stdin=subprocess.PIPE)
    assert process.stdin is not None
    count = 0
    with process.stdin as pipe:
        for frame in frames:
            pipe.write(frame.tobytes())
            count += 1
    if process.wait() != 0:
        raise OSError(None, "ffmpeg could not write the film", str(path))
    return count
