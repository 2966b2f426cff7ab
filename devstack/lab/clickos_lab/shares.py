# SPDX-License-Identifier: Apache-2.0
"""The switch and the toolstack run before guests that spin (adr/0027)."""

import pathlib

_ROOT = pathlib.Path('/sys/fs/cgroup')
#: The greatest weight of each version of control groups, by its file.
_WEIGHTS = {'cpu.weight': '10000', 'cpu.shares': '262144'}


def prefer(name, pid, root=_ROOT):
    """Move a process into a control group with the greatest weight.

    On a host whose kernel gives no such control it stays where it is.

    :param name: of the group, below the root of the hierarchy
    """
    hierarchy = _hierarchy(root)
    if hierarchy is None:
        return
    group = hierarchy / name
    group.mkdir(exist_ok=True)
    for file, weight in _WEIGHTS.items():
        if (group / file).exists():
            (group / file).write_text(weight)
    (group / 'cgroup.procs').write_text(str(pid))


def remove(name, root=_ROOT):
    """Remove an empty group of that name, in all hierarchies."""
    for group in (root / name, *root.glob(f'*/{name}')):
        for folder in (*group.glob('*/'), group):
            try:
                folder.rmdir()
            except OSError:
                # A process is in it, or it is gone.
                continue


def _hierarchy(root):
    """Return the root of the hierarchy with the controller ``cpu``, or None.

    A host may have some controllers in version 2 and others in version 1.
    """
    controllers = root / 'cgroup.controllers'
    if controllers.exists() and 'cpu' in controllers.read_text().split():
        if 'cpu' not in (root / 'cgroup.subtree_control').read_text().split():
            (root / 'cgroup.subtree_control').write_text('+cpu')
        return root
    return next((file.parent for file in sorted(root.glob('*/cpu.shares'))),
                None)
