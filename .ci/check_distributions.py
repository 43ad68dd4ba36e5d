"""Check a folder with an sdist and a wheel: both hold every module, and the sdist every file that the tests need.

python .ci/check_distributions.py dist
"""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

PACKAGES = ("msgid/", "spark_ext/")
FOR_TESTS = ("tests/", "README.md", "pyproject.toml", "noxfile.py", "CHANGELOG.md", "LICENSE", "bench/", "docs/")


def tracked() -> list[str]:
    """Return the files that git tracks, as paths from the root of the repository."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def main(folder: Path) -> None:
    """Exit with the list of missing files, if there are any."""
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    files = tracked()
    missing = [f"{wheel.name}: {name}" for name in files if name.startswith(PACKAGES) and name not in in_wheel]
    missing = [line for line in missing if not line.endswith((".c", ".h"))]  # the wheel holds the compiled module
    missing += [
        f"{sdist.name}: {name}" for name in files if name.startswith(PACKAGES + FOR_TESTS) and name not in in_sdist
    ]
    if missing:
        sys.exit("missing files:\n" + "\n".join(missing))
    print(f"{sdist.name}: {len(in_sdist)} entries, {wheel.name}: {len(in_wheel)} entries, no module is missing")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
