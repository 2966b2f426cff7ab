#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT: makes the Python module (cosmos.py, _cosmos.so) in the folder OUT.
# XEN_ROOT is where Debian's libxen-dev is unpacked (/ if it is installed), SWIG the program,
# PYTHON the interpreter it is for.
set -euo pipefail
out=${1:?usage: build.sh OUT}
here=$(cd "$(dirname "$0")" && pwd)
xen=${XEN_ROOT:-/}
python=${PYTHON:-python3}
include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')

mkdir -p "$out"
"${SWIG:-swig}" -python -threads -Wall -I"$here/../include" -outdir "$out" -o "$out/cosmos_wrap.c" "$here/cosmos.i"
# The wrapper is SWIG's; libcosmos itself is compiled with warnings elsewhere.
cc -std=gnu11 -O1 -fPIC -shared -Wno-format-truncation -I"$here/../include" -isystem "$xen/usr/include" \
    -I"$include" "$here"/../lib/*.c "$out/cosmos_wrap.c" -o "$out/_cosmos.so" \
    -L"$xen/usr/lib/x86_64-linux-gnu" -Wl,--allow-shlib-undefined -lxenlight -lxenctrl -lxenstore -lxentoollog -lpthread
