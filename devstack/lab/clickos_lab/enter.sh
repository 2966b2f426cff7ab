#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# enter.sh PASSWD [CLOSED...] -- [TREE...] -- COMMAND...: runs COMMAND in its own mount namespace.
# PASSWD covers /etc/passwd. An empty folder covers each CLOSED; each TREE stays visible below it.
set -euo pipefail

passwd=$1
shift
closed=() trees=() fds=()
for (( ; $# > 0; )); do
    [ "$1" != -- ] || break
    closed+=("$1")
    shift
done
shift
for (( ; $# > 0; )); do
    [ "$1" != -- ] || break
    exec {fd}<"$1"
    trees+=("$1") fds+=("$fd")
    shift
done
shift
mount --bind "$passwd" /etc/passwd
for folder in "${closed[@]}"; do
    mount -t tmpfs -o mode=0755,size=64k clickos-lab "$folder"
done
for i in "${!trees[@]}"; do
    (umask 022 && mkdir -p "${trees[i]}")
    mount --no-canonicalize --bind "/proc/self/fd/${fds[i]}" "${trees[i]}"
    fd=${fds[i]}
    exec {fd}<&-
done
exec "$@"
