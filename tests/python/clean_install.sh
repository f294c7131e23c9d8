#!/bin/sh
# Shows that the Python package installs on a fresh system, as a user would do it: in a bare Debian or Ubuntu, tools/setup, a virtual
# environment, `pip install .`, a plan with its explanation, the Python tests. As root; needs debootstrap, a network, 4 GB in DIR.
#
#   tests/python/clean_install.sh bookworm DIR                                  Debian 12
#   tests/python/clean_install.sh noble DIR http://archive.ubuntu.com/ubuntu    Ubuntu 24.04
#
# What is installed is the commit that is checked out. DIR is made, and left for a look; a DIR that has a system already is taken as it is.
set -eu

[ $# -ge 2 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
suite=$1 system=$2 mirror=${3:-http://deb.debian.org/debian}
repository=$(cd "$(dirname "$0")/../.." && pwd)
say() { printf 'clean_install: %s: %s\n' "$suite" "$*"; }
inside() { chroot "$system" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 PIP_CERT="${PIP_CERT:-}" "$@"; }
seconds() { date +%s; }

case $mirror in *ubuntu*) components=main,universe ;; *) components=main ;; esac
if [ ! -x "$system/usr/bin/apt-get" ]; then
    debootstrap --variant=minbase --components="$components" --include=ca-certificates "$suite" "$system" "$mirror" >"$system.log" 2>&1
fi
# Whoever sits behind a proxy has its certificate, and its name servers, here.
cp /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/"
cp /etc/resolv.conf "$system/etc/" 2>/dev/null || true
mountpoint -q "$system/proc" || mount -t proc proc "$system/proc"
mountpoint -q "$system/dev" || mount --bind /dev "$system/dev"
mountpoint -q "$system/dev/pts" || mount --bind /dev/pts "$system/dev/pts"
trap 'umount "$system/proc" "$system/dev/pts" "$system/dev"' EXIT

rm -rf "$system/root/rooftile" "$system/root/venv"
mkdir "$system/root/rooftile"
git -C "$repository" archive HEAD | tar -x -C "$system/root/rooftile"
say "$(. "$system/etc/os-release" && echo "$PRETTY_NAME"), commit $(git -C "$repository" rev-parse --short HEAD)"

begin=$(seconds)
inside sh -c 'cd /root/rooftile && tools/setup' >"$system.setup.log" 2>&1 || { tail -5 "$system.setup.log"; exit 1; }
say "tools/setup: $(($(seconds) - begin)) s; $(inside python3 --version), $(inside g++ -dumpfullversion) of g++, cmake $(inside cmake --version | sed -n '1s/.* //p')"

# The distribution's own pip must refuse, as README says; else the sentence there is wrong.
if inside sh -c 'command -v pip3 >/dev/null' && inside sh -c 'cd /root/rooftile && pip3 install --no-deps .' >"$system.system-pip.log" 2>&1; then
    say "the system's pip installs beside its packages"
    exit 1
fi
begin=$(seconds)
inside sh -c 'cd /root/rooftile && python3 -m venv /root/venv && /root/venv/bin/pip install .' >"$system.pip.log" 2>&1 || { tail -20 "$system.pip.log"; exit 1; }
times >"$system.times" # where others compute too, what counts is the time of processors
say "python3 -m venv, pip install .: $(($(seconds) - begin)) s, of processors $(tail -1 "$system.times") since the beginning; $(inside sh -c 'ls -s --block-size=K /root/venv/lib/python3*/site-packages/rooftile/_rooftile*.so')"

inside sh -c 'cd / && /root/venv/bin/python -c "
import rooftile
plan = rooftile.plan(\"gemm\", m=4096, n=14336, k=4096, machine=\"h100-sxm\")
print(plan)
print(plan.explain())"' >"$system.plan.log" || { tail -5 "$system.plan.log"; exit 1; }
say "a plan with its explanation: $(wc -l <"$system.plan.log") lines, the first of them: $(head -1 "$system.plan.log")"
inside /root/venv/bin/rooftile --version
# The tests of kernels have a driver without a GPU, and NVRTC from the folder that a build takes.
inside sh -c 'cd /root/rooftile && cuda=$(tools/setup --cuda-path) && mkdir -p /root/fake &&
    g++ -std=c++20 -O1 -shared -fPIC -DFAKE_HAS_GEMM -I. -I"$cuda/include" tests/fake/libcuda.so.1.cpp -o /root/fake/libcuda.so.1 -ldl && cd / &&
    ROOFTILE_CUDA_PATH=/root/fake ROOFTILE_TEST_CUDA=$cuda /root/venv/bin/python -m unittest discover -s /root/rooftile/tests/python' \
    >"$system.tests.log" 2>&1 || { tail -20 "$system.tests.log"; exit 1; }
say "Python tests: $(tail -3 "$system.tests.log" | tr -s '\n' ' ')"
