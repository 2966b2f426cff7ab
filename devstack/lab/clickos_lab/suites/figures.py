# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.figures [--counted] [PART ...]``.

Parts: ``boot``, ``store``, ``memory``, ``net``, ``create``, ``chains``,
``rings``, ``offload``, ``react``, ``density``, ``linux``. Measures guests on a
Xen host of its own and prints a table. Emulated without hardware
virtualization: the ratios of one run tell, the values do not. With
``--counted`` the host's clock counts instructions, each as two nanoseconds, so
the machine's other work changes nothing. The parts ``rings``, ``offload``,
``density`` and ``linux`` need it. Measure ``linux`` alone: dom0 has no room
for it next to cosmosd.
"""

import argparse
import importlib
import os
import signal
import sys

from clickos_lab import errors
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab.xen import command
from clickos_lab.xen import files
from clickos_lab.xen import host as _host
from clickos_lab.xen import image
from clickos_lab.xen import libraries
from clickos_lab.xen import linux
from clickos_lab.xen import modules
from clickos_lab.xen import netback
from clickos_lab.xen import qemu
from clickos_lab.xen import toolstack
from clickos_lab.xen import xen_paths

_TOP = paths.REPO / 'devstack/lab'
_PARTS = ('boot', 'store', 'memory', 'net', 'create', 'chains', 'react')
#: They need a clock that counts instructions.
_COUNTED = ('rings', 'offload', 'density', 'linux')
#: Those that need cosmosd and valed, and those that need only valed.
_OF_TOOLSTACK = {'store', 'net', 'create', 'chains', 'react', 'rings',
                 'offload', 'density'}
_OF_SWITCH = {'linux'}
#: Images of the parts in addition to the usual ones, built with these words.
_IMAGES = {'empty': ['empty']}


def main(arguments):
    """Measure the parts named, or all; return the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.path.insert(0, str(_TOP))
    parts, counted = _parse(arguments)
    table = importlib.import_module('tests.figures.table').Table()
    try:
        host = _start(parts, counted)
    except errors.LabError as e:
        print(f'error: {e}')
        return 1
    try:
        for name in parts:
            part = importlib.import_module(f'tests.figures.{name}')
            part.measure(host, table)
            _clean(host)
    finally:
        host.remove()
        print(table)
    return 0


def _parse(arguments):
    """Return the parts, and whether the clock counts instructions."""
    parser = argparse.ArgumentParser(prog='clickos_lab.suites.figures')
    parser.add_argument('--counted', action='store_true',
                        help="the host's clock counts instructions")
    parser.add_argument('parts', nargs='*', metavar='PART',
                        help=' '.join((*_PARTS, *_COUNTED)))
    found = parser.parse_args(arguments)
    unknown = set(found.parts) - {*_PARTS, *_COUNTED}
    if unknown:
        parser.error(f'{" ".join(sorted(unknown))}: no such part')
    counted = found.counted or any(p in _COUNTED for p in found.parts)
    return found.parts or list(_PARTS), counted


def _start(parts, counted):
    """Build what is needed and start the host."""
    state = paths.State()
    places = xen_paths.XenPaths(state)
    snapshot = command.prepare(state)
    contents = _contents(state, places, set(parts))
    host = _host.Host(places, f'f{os.getpid()}')
    if counted:
        host.boot_and_connect(qemu.Machine(counted=True), contents)
    else:
        host.restore(snapshot, contents)
    return host


def _clean(host):
    """Leave nothing of a part to the next one."""
    host.dom0.run(f"""
kill -9 $(pidof cosmosd valed)
for domid in $(xl list | sed 1,2d | sed 's/^[^ ]* *//; s/ .*//'); do
    xl destroy $domid
done
rm -rf {toolstack.FOLDER}/state""", timeout_s=900)


def _contents(state, places, parts):
    """Build what the parts need in dom0; return its files."""
    contents = files.Files()
    if parts != {'linux'}:
        _add_images(state, contents)
    contents.add(_timing(state, places), '/root/timing', 0o755)
    pktgen, = modules.closure(places, ['pktgen'])
    contents.add(pktgen, '/root/pktgen.ko')
    if parts & {*_OF_TOOLSTACK, *_OF_SWITCH}:
        toolstack.build(state, places)
        toolstack.add(state, contents, toolstack.PROGRAMS
                      if parts & _OF_TOOLSTACK else toolstack.SWITCH)
    if 'linux' in parts:
        _add_linux(state, places, contents)
    return contents


def _add_images(state, contents):
    """Add our guests' images."""
    image.add(state, contents)
    for name, words in _IMAGES.items():
        image.build(state, words)
        contents.add(image.folder(state) / name, f'{image.FOLDER}/{name}')


def _add_linux(state, places, contents):
    """Add a Linux guest, and what the vifs of valed need."""
    linux.build(state, places)
    # With the stock netback it works as the stock one.
    linux.add(places, contents, netback.build_front(state, places))
    netback.build(state, places)
    netback.add(places, contents)
    toolstack.add_script_settings(contents)


def _timing(state, places):
    """Build the stopwatch that runs in dom0; return its path."""
    usr = places.packages / 'usr'
    program = places.build / 'timing'
    shell.run(['cc', '-std=gnu11', '-O1', '-Wall', '-Wextra',
               '-isystem', usr / 'include',
               _TOP / 'tests/figures/timing.c', '-o', program,
               '-L', usr / f'lib/{libraries.TRIPLE}',
               '-Wl,--allow-shlib-undefined', '-lxenctrl', '-lxenstore'],
              state.log / 'timing.log')
    return program


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
