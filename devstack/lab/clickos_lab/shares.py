# SPDX-License-Identifier: Apache-2.0
"""The switch and the toolstack run before guests that spin (adr/0027)."""

import pathlib

_ROOT = pathlib.Path('/sys/fs/cgroup')
#: The greatest weight of each version of control groups, by its file.
_WEIGHTS = {'cpu.weight': '10000', 'cpu.shares': '262144'}


def prefer(name, pid, root=_ROOT):
    """Move a process into a control group with the greatest weight.

    :param name: of the group, below the root of the hierarchy
    """
    group = _hierarchy(root) / name
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
    """Return the root of the hierarchy with the controller ``cpu``."""
    controllers = root / 'cgroup.controllers'
    if not controllers.exists():
        return root / 'cpu'
    if 'cpu' not in (root / 'cgroup.subtree_control').read_text().split():
        (root / 'cgroup.subtree_control').write_text('+cpu')
    return root
