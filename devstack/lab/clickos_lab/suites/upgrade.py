# SPDX-License-Identifier: Apache-2.0
"""``make soak PARTS=upgrade``: a cloud of the previous release is upgraded.

``python -m clickos_lab.suites.upgrade [ORDER ...]`` starts a lab with the
parts of the previous release, lets a client ping a server through a firewall
and upgrades the lab part by part: the controllers first, then in another lab
the host first. After each part it writes and reads a handler, and launches
another VNF.
"""

import functools
import os
import sys

from clickos_lab import apt
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab.suites import on_lab
from clickos_lab.upgrade import backup
from clickos_lab.upgrade import place
from clickos_lab.upgrade import probe
from clickos_lab.upgrade import steps

ORDERS = {'controllers-first': ('controllers', 'host'),
          'host-first': ('host', 'controllers')}
#: The status of then_stop() after a signal.
_INTERRUPTED = 130
#: Seconds that the start of all guests again may interrupt traffic.
GUESTS_S = 60
#: The order after which databases are lost and restored.
RESTORED = 'host-first'


def main(names):
    """Upgrade in each order; return the exit status."""
    unknown = set(names) - set(ORDERS)
    if unknown:
        print(f'error: {", ".join(sorted(unknown))}: no such order; there '
              f'are {", ".join(ORDERS)}')
        return 2
    state = paths.State()
    try:
        prepare.everything(state)
        apt.ensure(state, apt.BACKUP_PACKAGES)
        lab = place.Lab(state)
        lab.ensure()
    except errors.LabError as e:
        print(f'error: {e}')
        return 1
    status = 0
    for name in names or ORDERS:
        done = on_lab.then_stop(lab, functools.partial(upgrade, lab, name))
        status = max(status, done)
        if done == _INTERRUPTED:
            break
    return status


def upgrade(lab, order):
    """Upgrade a lab of the previous release; return the exit status."""
    lab.down()
    log.info(f'{lab.older.version}, {order}')
    lab.start_older()
    found = probe.Probe(lab)
    try:
        found.start()
        found.expect_agent(lab.older.version)
        found.step('previous release', lambda: None)
        todo = steps.Steps(lab, found)
        for part in ORDERS[order]:
            getattr(todo, part)()
        found.step('heal and rebuild the guests', found.renew_guests,
                   GUESTS_S)
        if order == RESTORED:
            restore(lab, found)
        found.finish()
    finally:
        found.stop()
    lab.forget()
    for fault in found.faults:
        print(f'  {fault}')
    log.info(f'{order}: {len(found.faults)} faults')
    return int(bool(found.faults))


def restore(lab, found):
    """Lose all databases and the guests, and restore them from a dump."""
    saved = backup.Backup(lab)
    wanted = found.kept()
    with log.step('backup, loss and restoration of the databases'):
        saved.dump()
        found.step('after the dump', lambda: None)   # it changes values
        saved.lose_and_restore()
        for check in (functools.partial(found.await_kept, wanted),
                      found.settle):
            found.checked('restored databases', check)


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
