#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# xenstored.sh PREFIX RUNDIR: becomes Debian's xenstored without a hypervisor, in the foreground.
# Its socket is RUNDIR/socket; RUNDIR also holds the domains' rings and FIFOs (see noxen.c).
set -euo pipefail

if [ $# -ne 2 ]; then
    echo "usage: xenstored.sh PREFIX RUNDIR" >&2
    exit 2
fi
prefix=$(cd "$1" && pwd)
mkdir -p "$2"
run=$(cd "$2" && pwd)

daemon=$(echo "$prefix"/xen/usr/lib/xen-*/bin/xenstored)
for file in "$daemon" "$prefix/xen/noxen.so"; do
    if [ ! -e "$file" ]; then
        echo "xenstored.sh: $file is missing: run build.sh $prefix first" >&2
        exit 1
    fi
done

pid=$(cat "$run/xenstored.pid" 2>/dev/null || true)
# A killed process that its parent did not wait for keeps its name, but has no program.
name=
if [ -n "$pid" ] && [ -e "/proc/$pid/exe" ]; then
    name=$(cat "/proc/$pid/comm" 2>/dev/null || true)
fi
if [ "$name" = xenstored ]; then
    echo "xenstored.sh: $run: xenstored runs there already, process $pid" >&2
    exit 1
fi
# Files of an earlier xenstored are stale: it kept everything in memory.
rm -f "$run/socket" "$run/xenstored.pid" "$run/to-store"
mkfifo -m 600 "$run/to-store"
umask 077
exec env \
    LD_LIBRARY_PATH="$prefix/xen/usr/lib/$(uname -m)-linux-gnu" \
    LD_PRELOAD="$prefix/xen/noxen.so" \
    NOXEN_DIR="$run" XENSTORED_RUNDIR="$run" XENSTORED_ROOTDIR="$run" \
    "$daemon" --no-fork --pid-file "$run/xenstored.pid"
