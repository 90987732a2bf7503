"""Compare wheel and sdist in a folder with what git tracks: nothing missing, nothing else."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

NOT_SHIPPED = (".ci/",)  # not in the sdist


def tracked(*paths: str) -> set[str]:
    """The files that git tracks below some paths."""
    listed = subprocess.run(
        ["git", "ls-files", *paths], capture_output=True, text=True, check=True
    ).stdout
    return set(listed.splitlines())


def compare(what: str, found: set[str], wanted: set[str]) -> bool:
    """Say what is missing or too much; whether all is right."""
    for name in sorted(wanted - found):
        print(f"{what} lacks {name}")
    for name in sorted(found - wanted):
        print(f"{what} has {name}, which does not belong there")
    if found == wanted:
        print(f"{what}: {len(found)} files, as they should be")
    return found == wanted


def main(folder: Path) -> int:
    """Check the one wheel and the one sdist in a folder."""
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = {name for name in names if ".dist-info/" in name}
    package = {name.removeprefix("src/") for name in tracked("src")}
    parts = {name.partition(".dist-info/")[2] for name in about}
    wanted = {"METADATA", "WHEEL", "entry_points.txt", "licenses/LICENSE", "RECORD"}
    right = [
        compare("the wheel", names - about, package),
        compare("the wheel's metadata", parts, wanted),
    ]
    with tarfile.open(sdist) as tar:
        inside = {member.name.partition("/")[2] for member in tar.getmembers() if member.isfile()}
    all_files = {name for name in tracked() if not name.startswith(NOT_SHIPPED)}
    right.append(compare("the sdist", inside, all_files | {"PKG-INFO"}))
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
