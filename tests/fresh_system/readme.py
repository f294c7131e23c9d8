"""What README.md promises to a fresh Debian 12: readme.py ROOT BUILD PYTHON [--whole]

A system is made by debootstrap in BUILD, and goes at the end. In it, before anything else is there than Python: the wheel of `make wheel`
installs without a network, plans, draws. Then the commands of README.md's code blocks run as they are written there, line by line, but for
those that NOT_HERE names. Compiling the library takes two cores ten minutes, so it comes from BUILD: `make run` finds the program built,
`pip install` the library installed. With --whole both compile, as a user's do.

Ends with 4, and says why, where this cannot be done: without ROOFTILE_TEST_ALL=1, root, debootstrap or this glibc.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

# Lines that need what a fresh system without a GPU has not.
NOT_HERE = [
    (r"make test$", "this is one of its tests"),
    (r"rooftile measure ", "needs a GPU"),
    (r"import rooftile\.torch|.* rt\.", "needs PyTorch and a GPU"),
    (r"mod = rooftile\.load\(", "needs a GPU"),
]
GLIBC = (2, 36)  # of Debian 12
MIRROR = "http://deb.debian.org/debian"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(4)


def blocks(text):
    """The code blocks: of each its lines, without the blanks before them."""
    out, inside = [], False
    for line in text.splitlines():
        if line.startswith("    "):
            if not inside:
                out.append([])
            out[-1].append(line[4:])
        inside = line.startswith("    ") or (inside and not line)
    return out


def without_remark(line):
    return re.split(r"\s{2,}# ", line)[0].rstrip()


def kind_of(block):
    first = block[0]
    if first.startswith("$ "):
        return "shown"
    if first.startswith("import "):
        return "python"
    if first.startswith("find_package("):
        return "cmake"
    if first.split()[0] in ("make", "rooftile", "tools/setup", "python3"):
        return "commands"
    sys.exit(f"README.md has a block that this test cannot read: {first}")


class System:
    """A Debian below a folder; its mounts are of each command's own and go with it."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", folder, MIRROR], check=True,
                       stdout=subprocess.DEVNULL)
        # Whoever is behind a proxy has its certificate, and its name servers, here.
        for file in ("/etc/ssl/certs/ca-certificates.crt", "/etc/resolv.conf"):
            if os.path.exists(file):
                shutil.copy(file, f"{folder}{file}")

    def run(self, command, cwd="", network=True, **env):
        """What it prints; ends the test where it fails."""
        kept = {name: os.environ[name] for name in ("PIP_CERT", "http_proxy", "https_proxy", "no_proxy") if name in os.environ}
        env = {"HOME": "/root", "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "COLUMNS": "80",
               "DEBIAN_FRONTEND": "noninteractive"} | kept | env
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={self.folder}/proc"]
        begin = time.monotonic()
        done = subprocess.run(unshare + ([] if network else ["--net"]) + ["chroot", self.folder, "env", "-i"] +
                              [f"{name}={value}" for name, value in env.items()] + ["sh", "-c", f"cd /root/{cwd} && {command}"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(f"{time.monotonic() - begin:6.1f} s  {command.splitlines()[0]}", flush=True)
        if done.returncode != 0:
            sys.exit(f"ends with {done.returncode}:\n{done.stdout[-4000:]}")
        return done.stdout


def wheel_in(system, root, build, python):
    """Where neither compiler nor CUDA is, and no network."""
    subprocess.run([root / "tools/wheel", build, python], check=True, stdout=subprocess.DEVNULL)
    (wheel,) = (build / "wheel/dist").glob("*.whl")
    shutil.copy(wheel, system.folder / "root")
    system.run("apt-get update -q && apt-get install -y -q --no-install-recommends python3 python3-venv")
    system.run(f"python3 -m venv alone && alone/bin/pip install --no-index {wheel.name}", network=False)
    system.run("alone/bin/rooftile plan gemm 4096x14336x4096 --machine h100-sxm --svg plan.svg", network=False)
    drawn = "import rooftile; rooftile.gemm(4096, 14336, 4096, machine='h100-sxm').tile_map().save('tiles.svg')"
    system.run(f'alone/bin/python -c "{drawn}"', network=False)
    for picture in ("plan.svg", "tiles.svg"):
        if (system.folder / "root" / picture).read_text().count("<rect") < 10:
            sys.exit(f"{picture} shows nothing")


def check_shown(block, printed):
    """Each line that README shows was printed, up to its three dots; however it was wrapped."""
    printed = " ".join(printed.split())
    for line in block[1:]:
        shown = " ".join(line.split("...")[0].split())
        if shown not in printed:
            sys.exit(f"README.md shows '{shown}', and it is not printed:\n{printed[:3000]}")


def readme_in(system, root, build, whole):
    system.run("apt-get install -y -q --no-install-recommends git make")  # which README asks for
    checkout = system.folder / "root/rooftile"
    checkout.mkdir()
    files = subprocess.run(["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"], check=True, capture_output=True).stdout
    for name in filter(None, files.decode().split("\0")):
        if (root / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, checkout / name, follow_symlinks=False)
    subprocess.run(["cmake", "--install", build, "--prefix", "/usr/local"], check=True, stdout=subprocess.DEVNULL,
                   env=os.environ | {"DESTDIR": str(system.folder)})
    env = {"PATH": "/root/rooftile/build:/root/rooftile/venv/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    if not whole:
        (checkout / "build").mkdir()
        shutil.copy(build / "rooftile", checkout / "build")
        env["PIP_CONFIG_SETTINGS"] = "cmake.define.ROOFTILE_INSTALLED=/usr/local"
    ran = 0
    # What sets up comes first, whatever the reader looks at first.
    order = {"commands": 0, "shown": 1, "python": 2, "cmake": 3}
    for block in sorted(blocks((root / "README.md").read_text()), key=lambda b: order[kind_of(b)]):
        lines = [without_remark(line) for line in block]
        kind, here = kind_of(block), []
        for line in lines:
            why = next((why for pattern, why in NOT_HERE if re.match(pattern, line)), None)
            if why:
                print(f"           not here: {line}: {why}")
            else:
                here.append(line)
        if kind == "shown":
            check_shown(lines, system.run(here[0].removeprefix("$ "), "rooftile", **env))
        elif kind == "python":
            system.run("venv/bin/python -c " + shlex.quote("\n".join(here)), "rooftile", **env)
        elif kind == "cmake":
            (checkout / "mine").mkdir()
            text = ["cmake_minimum_required(VERSION 3.25)", "project(mine CXX)", "add_executable(mine ../examples/gemm/01_plan.cpp)", *here]
            (checkout / "mine/CMakeLists.txt").write_text("\n".join(text) + "\n")
            # Without the build folder on PATH, where CMake would find the package of the checkout.
            system.run("cmake -S mine -B mine/build && cmake --build mine/build && mine/build/mine", "rooftile")
        else:
            for line in here:
                if line == "make run" and not whole:
                    line = "make -o program run"
                printed = system.run(line, "rooftile", **env)
                if line.startswith(("make", "rooftile plan")) and not re.search(r"TFLOP/s|FLOP", printed):
                    sys.exit(f"{line} prints no plan:\n{printed[:3000]}")
        ran += len(here) if kind in ("commands", "python") else 1
    if ran < 16:
        sys.exit(f"README.md has {ran} lines to run, and had 16 or more")
    print(f"{ran} lines of README.md ran")


def main():
    root, build, python = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    if os.environ.get("ROOFTILE_TEST_ALL") != "1":
        skip("a fresh Debian is made in make test-all alone")
    if os.geteuid() != 0:
        skip("who makes a system must be root")
    if not shutil.which("debootstrap"):
        skip("no debootstrap; tools/setup --fresh-system installs it")
    if tuple(int(part) for part in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")) > GLIBC:
        skip("what is built here needs a newer glibc than Debian 12 has")
    folder = build / "tests/fresh_system"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        system = System(folder)
        wheel_in(system, root, build, python)
        readme_in(system, root, build, "--whole" in sys.argv[4:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
