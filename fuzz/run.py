"""Fuzz the C files and the readers under sanitizers; print the inputs, the lines that were reached, and the mutants.

    python fuzz/run.py                       # 20 minutes
    python fuzz/run.py --minutes 5
    python fuzz/run.py --only readers --minutes 60
    python fuzz/run.py --shrink              # write the smallest inputs with the same coverage to fuzz/corpus

Needs clang with its sanitizers, llvm-profdata, llvm-cov and atheris. `README.md` describes the programs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = ROOT / "build" / "fuzz"
CORE = "msgid/ids/_native/_speedups"
SCANNER = "msgid/iggy/records/_scan"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
SANITIZERS = "address,undefined"
SHARES = {"scan": 0.12, "ids": 0.08, "compare_scan": 0.2, "compare_ids": 0.3, "readers": 0.2}
"""The share of the time of each program; building, failing allocations and mutants take the rest."""
IN_C = {"scan": SCANNER, "ids": CORE}
MOST_LENGTH = 4000
COMMON = ["-g", "-O1", "-fno-omit-frame-pointer", "-fprofile-instr-generate", "-fcoverage-mapping"]


class Mutant(NamedTuple):
    """A change of the C code, and the program that must find it."""

    breaks: str
    program: str
    file: str
    old: str
    new: str


MUTANTS = [
    Mutant("the last table of CRC-32 is empty", "scan", SCANNER, "k = 1; k < 8; k++", "k = 1; k < 7; k++"),
    Mutant("a payload may end behind the bytes", "scan", SCANNER, "NEED((uint64_t)(payload - place) + length);", ""),
    Mutant("G is a digit", "ids", CORE, "EACH(0x80 - 7)", "EACH(0x80 - 8)"),
    Mutant("the last digits of a row lose a bit", "ids", CORE, "memcpy(out + 6, PAIRS + 2 * (sequence & 0xFF), 2)",
           "memcpy(out + 6, PAIRS + 2 * (sequence & 0x7F), 2)"),
    Mutant("a state of Iggy is unknown", "compare_scan", SCANNER, " || state == 30", ""),
    Mutant("a column holds other bytes of the process ID", "compare_ids", CORE, "get16(raw + PID_START)",
           "get16(raw + PID_START + 1)"),
]  # fmt: skip
MUTANT_SECONDS = {True: 60, False: 180}
"""The seconds until a mutant counts as unseen: for programs in C, and for those of atheris, which are slower."""


def call(command: list[str], env: dict[str, str] | None = None) -> str:
    """Run a command, and return its output; exit if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False, errors="replace")
    if done.returncode:
        sys.exit(f"cannot run {' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def copy_of_package(tree: Path) -> Path:
    """Copy `msgid` into an empty folder, without compiled files."""
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "msgid", tree / "msgid", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return tree


def build_module(tree: Path, module: str) -> None:
    """Compile a module for atheris, whose own library has the run-time part of the sanitizers."""
    flags = [
        "-shared",
        "-fPIC",
        "-fsanitize=fuzzer-no-link,address",
        "-fsanitize=undefined",
        "-fsanitize-trap=undefined",
    ]
    include = sysconfig.get_path("include")
    call(["clang", *COMMON, *flags, f"-I{include}", f"{tree}/{module}.c", "-o", f"{tree}/{module}{SUFFIX}"])


def build_program(tree: Path, name: str) -> None:
    """Compile a program of libFuzzer, which includes the C file."""
    library = sysconfig.get_config_var("LIBDIR")
    python = f"-lpython{sysconfig.get_config_var('LDVERSION')}"
    flags = [f"-fsanitize=fuzzer,{SANITIZERS}", "-fno-sanitize-recover=undefined"]
    paths = [f"-I{sysconfig.get_path('include')}", f"-I{tree}", f"-L{library}", f"-Wl,-rpath,{library}"]
    call(["clang", *COMMON, *flags, str(HERE / f"{name}.c"), *paths, python, "-o", str(tree / name)])


def environment(tree: Path, name: str) -> dict[str, str]:
    """Return the environment of a program."""
    env = os.environ | {
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # the interpreter's own leaks are not ours
        "LLVM_PROFILE_FILE": f"{tree}/profiles/{name}-%m.profraw",  # %m: each module has a file of its own
    }
    if name not in IN_C:
        import atheris

        env["LD_PRELOAD"] = f"{atheris.path()}/asan_with_fuzzer.so"
        env["PYTHONMALLOC"] = "malloc"  # Python's own allocator hides a use of freed memory
        env["PYTHONPATH"] = str(tree)
    return env


def program(tree: Path, name: str) -> list[str]:
    """Return the command of a program."""
    return [str(tree / name)] if name in IN_C else [sys.executable, str(HERE / f"{name}.py")]


def folders(name: str) -> list[str]:
    """Return the folders of inputs: the first one is written too."""
    import seeds

    own = WORK / "corpus" / name
    seeds.write(name, own)
    kept = HERE / "corpus" / name
    return [str(own), *([str(kept)] if kept.is_dir() else [])]


def fuzz(tree: Path, name: str, seconds: float) -> tuple[bool, str]:
    """Fuzz for a time, and return whether nothing was found, and the output."""
    findings = tree / "findings"
    findings.mkdir(exist_ok=True)
    options = [
        f"-max_total_time={max(1, round(seconds))}",
        f"-max_len={MOST_LENGTH}",
        "-len_control=0",
        "-timeout=300",
        "-report_slow_units=300",
    ]
    command = [*program(tree, name), *options, f"-artifact_prefix={findings}/{name}-", *folders(name)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(tree, name), check=False, errors="replace"
    )
    return done.returncode == 0, done.stdout + done.stderr


def print_coverage(tree: Path) -> None:
    """Print how many lines of each C file some program reached; a module and a program of the same file are joined."""
    profiles = [str(path) for path in (tree / "profiles").glob("*.profraw")]
    merged = str(tree / "all.profdata")
    call(["llvm-profdata", "merge", "-sparse", *profiles, "-o", merged])
    objects = {CORE: ["ids", f"{CORE}{SUFFIX}"], SCANNER: ["scan", f"{SCANNER}{SUFFIX}"]}
    for source, names in objects.items():
        reached: dict[int, bool] = {}
        for name in names:
            if not (tree / name).exists():
                continue
            report = call(
                [
                    "llvm-cov",
                    "export",
                    "-format=lcov",
                    f"-instr-profile={merged}",
                    str(tree / name),
                    f"{tree}/{source}.c",
                ]
            )
            for line, count in re.findall(r"^DA:(\d+),(\d+)", report, re.MULTILINE):
                reached[int(line)] = reached.get(int(line), False) or count != "0"
        share = sum(reached.values()) / max(1, len(reached))
        print(f"{source}.c: {sum(reached.values())} of {len(reached)} lines reached, {share:.0%}")
        missed = [str(line) for line, is_reached in sorted(reached.items()) if not is_reached]
        print(f"  not reached: {', '.join(missed)}" if missed else "")


def sees(mutant: Mutant) -> str | None:
    """Return the seconds after which the program finds a mutant, or None if it does not."""
    tree = copy_of_package(WORK / "mutant")
    source = tree / f"{mutant.file}.c"
    text = source.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        sys.exit(f"the mutant {mutant.breaks!r} does not fit {mutant.file}.c")
    source.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    if mutant.program in IN_C:
        build_program(tree, mutant.program)
    else:
        for module in (CORE, SCANNER):
            build_module(tree, module)
    begin = time.monotonic()
    is_quiet, _ = fuzz(tree, mutant.program, MUTANT_SECONDS[mutant.program in IN_C])
    return None if is_quiet else f"{time.monotonic() - begin:.0f} s"


def run_all(names: list[str], minutes: float) -> bool:
    """Run the programs, and return whether nothing was found."""
    tree = copy_of_package(WORK / "tree")
    begin, is_clean = time.monotonic(), True
    for module in (CORE, SCANNER):
        build_module(tree, module)
    for name in names:
        if name in IN_C:
            build_program(tree, name)
    print(f"built in {time.monotonic() - begin:.0f} s", flush=True)
    total = sum(SHARES[name] for name in names) if len(names) < len(SHARES) else 1
    for name in names:
        is_quiet, output = fuzz(tree, name, 60 * minutes * SHARES[name] / total)
        runs = re.findall(r"^Done (\d+) runs in (\d+) second", output, re.MULTILINE)
        print(
            f"{name}: {' inputs, '.join(runs[-1])} s, nothing found" if is_quiet and runs else f"{name}: FOUND",
            flush=True,
        )
        if not is_quiet:
            is_clean = False
            print(f"{output[-6000:]}\nThe input is in {tree / 'findings'}.", flush=True)
    done = subprocess.run(
        program(tree, "allocations"), env=environment(tree, "allocations"), capture_output=True, text=True, check=False
    )
    print(f"allocations: {done.stdout.strip() or 'FOUND'}{done.stderr[-6000:] if done.returncode else ''}", flush=True)
    print_coverage(tree)
    return is_clean and not done.returncode


def main() -> None:
    """Run the programs and the mutants; exit with 1 if something is found, or a mutant is not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20, help="the minutes of fuzzing; 20 by default")
    parser.add_argument("--only", nargs="+", choices=SHARES, default=list(SHARES), help="the programs; all by default")
    parser.add_argument(
        "--shrink", action="store_true", help="write the smallest corpus of the programs to fuzz/corpus"
    )
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    if arguments.shrink:
        for name in arguments.only:
            kept, joined = HERE / "corpus" / name, WORK / "joined"
            shutil.rmtree(joined, ignore_errors=True)
            joined.mkdir(parents=True)
            merge = [*program(WORK / "tree", name), "-merge=1", f"-max_len={MOST_LENGTH}", str(joined), *folders(name)]
            call(merge, environment(WORK / "tree", name))
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(joined, kept)
        return
    is_clean = run_all(arguments.only, arguments.minutes)
    for mutant in MUTANTS if len(arguments.only) == len(SHARES) else []:
        seconds = sees(mutant)
        is_clean = is_clean and seconds is not None
        print(
            f"mutant {mutant.breaks!r}: {mutant.program} {f'finds it in {seconds}' if seconds else 'DOES NOT FIND IT'}",
            flush=True,
        )
    sys.exit(not is_clean)


if __name__ == "__main__":
    main()
