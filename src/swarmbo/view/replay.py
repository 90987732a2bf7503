"""A recovery as one file to give to others: a page, a film or a picture.

The page holds everything it needs, the drawing code of `swarmbo play` too, and
opens from a disk without a network.
"""

import base64
import json
import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from swarmbo.errors import InputError, cut, short
from swarmbo.files import whole_file
from swarmbo.recovery.runner import groups_of
from swarmbo.view.footage import Footage, Models, Take
from swarmbo.view.scene import map_json, palette, web_text, world_json

KINDS = ("html", "gif", "mp4", "png")  # that can be written, by the end of the file's name
SCHEMES = ("light", "dark")
MAX_BYTES = 5_000_000  # of a page or an animation: few mailboxes take more
MODULES = ("colours", "arena", "curve", "map", "replay")  # each needs only those before it
_TURN = 256  # steps of a full turn


def replay_kind(path: str | os.PathLike[str]) -> str:
    """The kind of replay that a file's name asks for; InputError when it is not known."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise InputError(
            f"{cut(path)}: is not the name of a replay; let it end in .{', .'.join(KINDS[:-1])} "
            f"or .{KINDS[-1]}"
        )
    if kind == "mp4":
        from swarmbo.view.film import check_video

        check_video()
    return kind


def write_replay(
    footage: Footage, path: str | os.PathLike[str], *, scheme: str = "light"
) -> dict[str, Any]:
    """Write a recovery as a page, a film or a picture, by the end of the file's name.

    `scheme` is "light" or "dark"; a page follows what its reader likes. Returns
    facts about the file: its bytes, and of a film its seconds.
    """
    kind = replay_kind(path)
    if scheme not in SCHEMES:
        raise InputError(f"there is no scheme {short(scheme)}; name one of {', '.join(SCHEMES)}")
    facts: dict[str, Any] = {}
    with whole_file(path) as temporary:
        if kind == "html":
            temporary.write_text(page(footage), encoding="utf-8")
        else:
            from swarmbo.view.film import write_film

            facts = write_film(footage, temporary, kind, scheme)
        facts["bytes"] = temporary.stat().st_size
    return facts


# --- the page ----------------------------------------------------------------------------------


def page(footage: Footage) -> str:
    """The page of a recovery, at most 5 MB: moments are left out of a long one, and are not seen.

    InputError when it is too long even so.
    """
    for every in (1, 2, 4, 8):
        data = _packed(footage, every)
        if len(data["blob"]) < 0.9 * MAX_BYTES:
            text = _filled(footage, data)
            if len(text.encode()) <= MAX_BYTES:
                return text
    raise InputError(
        f"a replay of {len(footage.tries)} evaluations is larger than {MAX_BYTES / 1e6:g} MB; "
        "recover with fewer --evaluations"
    )


def _filled(footage: Footage, data: dict[str, Any]) -> str:
    report = footage.report
    # Less-than signs are escaped, so that no name in the data can end the script.
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in palette()[scheme].items())
        for scheme in SCHEMES
    )
    parts = {
        "title": _escaped(f"{Path(report['map']).name}, {report['disturbance']}"),
        "style": f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
        + web_text("replay.css"),
        "data": text,
        "script": bundle(MODULES),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], web_text("replay.html"))


def _escaped(text: str) -> str:
    """A name of any kind as text of a page."""
    text = text.encode(errors="replace").decode()
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def bundle(names: Sequence[str]) -> str:
    """Modules of `view/web` as one script: browsers load no modules from a disk.

    Each but the last becomes a function of its own, whose exports the later ones name.
    """
    pieces = []
    for name in names:
        text = re.sub(
            r"^import (\{[^}]*\}) from \"\./(\w+)\.js\";$",
            r"const \1 = module_\2;",
            web_text(f"{name}.js"),
            flags=re.MULTILINE,
        )
        pattern = r"^export (async function|function|class|const) (\w+)"
        exported = [found[1] for found in re.findall(pattern, text, re.MULTILINE)]
        text = re.sub(r"^export (?=async|function|class|const)", "", text, flags=re.MULTILINE)
        text = text.replace("</script", "<\\/script")
        if name != names[-1]:
            returned = f"return {{{', '.join(exported)}}};"
            text = f"const module_{name} = (() => {{\n{text}\n{returned}\n}})();"
        pieces.append(text)
    return '"use strict";\n' + "\n".join(pieces)


def _packed(footage: Footage, every: int) -> dict[str, Any]:
    """All that the page shows; of the trials every so many ticks."""
    report, case = footage.report, footage.case
    takes = [footage.before, footage.at_fault, *footage.tries, footage.after]
    binary = b"".join(_take_bytes(take, every) for take in takes)
    models = None
    if footage.models is not None:
        models, more = _model_bytes(footage.models)
        binary += more
    broken = groups_of(case.scenario.effects())
    return {
        "version": report["version"],
        "map": map_json(footage.behaviour_map, Path(report["map"]).name),
        "world": world_json(case.scenario),
        "tick": case.scenario.tick,
        "ticks": footage.before.ticks // every * every,
        "every": every,
        "trial": footage.trial,
        "trials": case.scenario.trials,
        "takes": [{"faults": take.faults, "food": take.food, "team": take.team} for take in takes],
        "groups": broken,
        "members": footage.members,
        "models": models,
        **{
            name: report[name]
            for name in ("disturbance", "learner", "options", "seed", "continuous", "device")
        },
        **{name: report[name] for name in ("before", "at_fault", "best", "composed", "exhaustive")},
        "final": footage.final,
        "evaluations": [
            {
                name: _rounded(entry[name])
                for name in ("cell", "prediction", "deviation", "outcome", "best", "swarm_best")
            }
            for entry in report["evaluations"]
        ],
        "blob": base64.b64encode(zlib.compress(binary, 9)).decode("ascii"),
    }


def _rounded(value: Any) -> Any:
    """Numbers with the digits that a page shows."""
    if isinstance(value, list):
        return [_rounded(entry) for entry in value]
    return round(value, 3) if isinstance(value, float) else value


def _take_bytes(take: Take, every: int) -> bytes:
    """A trial as bytes that compress well: changes from one moment to the next, robot by robot.

    x, then y, in mm (16 bits: all low bytes, then all high ones); then the heading in
    1/256 turns; then twice the items delivered since the moment before, plus 1
    for a robot that carries one.
    """
    shown = slice(0, take.ticks // every * every + 1, every)
    parts = []
    for place in (take.x, take.y):
        millimetres = np.round(1000 * place[shown].T).astype(np.int16)
        changes = np.diff(millimetres, axis=1, prepend=np.int16(0))
        parts += [changes & 0xFF, changes >> 8]
    steps = np.round(take.theta[shown].T * (_TURN / (2 * np.pi))).astype(np.int64)
    parts.append(np.diff(steps, axis=1, prepend=0))
    delivered = np.diff(take.items[shown].T, axis=1, prepend=0)
    parts.append(2 * np.minimum(delivered, 127) + take.carrying[shown].T)
    return b"".join((part & 0xFF).astype(np.uint8).tobytes() for part in parts)


def _model_bytes(models: Models) -> tuple[dict[str, Any], bytes]:
    """What was expected as bytes: 1/255 of the largest, changes from one evaluation to the next."""
    scales, parts = {}, []
    for name, values in (("mean", models.mean), ("deviation", models.deviation)):
        scale = max(float(values.max()), 1e-9)
        bytes_ = np.round(np.clip(values / scale, 0, 1) * 255).astype(np.uint8)
        parts.append(np.diff(bytes_, axis=0, prepend=np.uint8(0)).astype(np.uint8).tobytes())
        scales[name] = scale
    return scales, b"".join(parts)
