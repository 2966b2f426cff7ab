# SPDX-License-Identifier: Apache-2.0
"""Runs review.py as a process of its own, with bounded time and memory.

tosca-parser is a large program that a tenant's text controls: whatever the
text makes it do ends with the process.
"""

import json
import os
import sys
import tempfile

from oslo_concurrency import lockutils
from oslo_concurrency import processutils

from tacker_clickos import exception

_CPU_S = 30
_WALL_S = 120
_MEMORY_BYTES = 1 << 30
#: Reviews that run at once; others wait.
_ROOM = lockutils.internal_fair_lock('clickos-package-review')


def require(stream):
    """Refuse a package that ClickOS or Tacker cannot read.

    :param stream: the bytes of the CSAR
    :returns: the VNFD's id
    :raises: PackageFaulty with a line for each fault
    """
    with tempfile.NamedTemporaryFile(suffix='.csar') as file:
        file.write(stream.read())
        file.flush()
        found, vnfd_id = _review(file.name)
    if found:
        raise exception.PackageFaulty(faults='\n'.join(found))
    return vnfd_id


def _review(path):
    python = _python()
    try:
        with _ROOM.write_lock():
            output, _errors = processutils.execute(
                python, '-m', 'tacker_clickos.package.review', path,
                prlimit=processutils.ProcessLimits(
                    cpu_time=_CPU_S, address_space=_MEMORY_BYTES),
                python_exec=python, timeout=_WALL_S)
    except processutils.ProcessExecutionError as error:
        return ['the package: its review took more than %d s or %d MiB (exit '
                'status %s)' % (_CPU_S, _MEMORY_BYTES >> 20, error.exit_code)
                ], None
    return json.loads(output)


def _python():
    """Return the interpreter; under uWSGI sys.executable is uWSGI."""
    name = os.path.basename(sys.executable or '')
    return (sys.executable if name.startswith('python')
            else os.path.join(sys.prefix, 'bin', 'python3'))
