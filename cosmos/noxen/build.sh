#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh PREFIX: unpacks Debian's xenstored and its libraries into PREFIX/xen and builds the shim
# PREFIX/xen/noxen.so. Nothing is installed: the hypervisor package would change the host's boot menu.
# Running it again does only what is missing.
set -euo pipefail

# The Xen that this Debian has.
xen=$(apt-cache depends xen-system-amd64 | sed -n 's/.* xen-hypervisor-\([0-9.]*\)-amd64$/\1/p')
readonly PACKAGES=(
    "xen-utils-$xen" xenstore-utils "libxenmisc$xen" libxenstore4 libxenevtchn1 libxengnttab1
    libxencall1 libxentoolcore1 libxentoollog1 libxenforeignmemory1 libxendevicemodel1 libxenhypfs1
)

if [ $# -ne 1 ]; then
    echo "usage: build.sh PREFIX" >&2
    exit 2
fi
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)

unpack() {
    local new="$prefix/xen.new"
    rm -rf "$new"
    mkdir -p "$new/debs"
    # apt's download sandbox user may not be able to write below PREFIX; root downloads as itself.
    (cd "$new/debs" && apt-get -q -o APT::Sandbox::User=root download "${PACKAGES[@]}")
    local deb
    for deb in "$new"/debs/*.deb; do
        dpkg-deb -x "$deb" "$new"
    done
    rm -rf "$new/debs" "$prefix/xen"
    mv "$new" "$prefix/xen"
}

compile() {
    local out="$prefix/xen/noxen.so"
    "${CC:-cc}" -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror \
        -fPIC -shared -o "$out.new" "$here/noxen.c"
    mv "$out.new" "$out"
}

[ -x "$prefix/xen/usr/lib/xen-$xen/bin/xenstored" ] || unpack
[ "$prefix/xen/noxen.so" -nt "$here/noxen.c" ] || compile
