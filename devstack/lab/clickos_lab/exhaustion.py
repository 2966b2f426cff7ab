# SPDX-License-Identifier: Apache-2.0
"""Lets running processes have no more memory or descriptors than they use."""

import contextlib
import os
import pathlib
import resource

KINDS = ('descriptors', 'memory')


@contextlib.contextmanager
def of(pids, kind):
    """Refuse processes more of a resource meanwhile.

    :param kind: one of KINDS
    """
    number = {'descriptors': resource.RLIMIT_NOFILE,
              'memory': resource.RLIMIT_AS}[kind]
    before = {}
    try:
        for pid in pids:
            with contextlib.suppress(OSError):
                before[pid] = resource.prlimit(pid, number)
                resource.prlimit(pid, number,
                                 (_used(pid, kind), before[pid][1]))
        yield
    finally:
        for pid, limits in before.items():
            with contextlib.suppress(OSError):
                resource.prlimit(pid, number, limits)


def _used(pid, kind):
    if kind == 'descriptors':
        return len(os.listdir(f'/proc/{pid}/fd'))
    pages = pathlib.Path(f'/proc/{pid}/statm').read_text().split()[0]
    return int(pages) * resource.getpagesize()
