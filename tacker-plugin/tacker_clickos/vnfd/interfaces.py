# SPDX-License-Identifier: Apache-2.0
"""Checks which management driver a VNFD names.

Tacker compares the driver's file only when an operation calls it, and a
mismatch found by an update would leave the VNF locked. So this module checks
the whole file before Tacker makes the VNF.
"""

import importlib.util
import os

from tacker_clickos import exception

#: Not imported: Tacker imports it, and with it half of Tacker.
_MODULE = 'tacker_clickos.mgmt_driver'
DRIVER = 'clickos_mgmt'


def check(place, vnf, package_dir):
    """Refuse operations of another driver, or of a changed copy of ours.

    :param vnf: the node template of the VNF
    :raises: VnfdInvalid
    """
    operations = (vnf.get('interfaces') or {}).get('Vnflcm') or {}
    named = {name for name, operation in operations.items() if operation}
    for name in sorted(named):
        if operations[name] != {'implementation': DRIVER}:
            raise _invalid(place, '%s can be implemented by %s only'
                           % (name, DRIVER))
    if named:
        artifact = (vnf.get('artifacts') or {}).get(DRIVER) or {}
        _compare(place, os.path.join(package_dir, str(artifact.get('file'))))


def _invalid(place, reason):
    return exception.VnfdInvalid(place=place, reason=reason)


def _compare(place, path):
    name = os.path.basename(path)
    if not os.path.isfile(path):
        raise _invalid(place, 'artifact %s is missing in the package' % name)
    installed = importlib.util.find_spec(_MODULE).origin
    with open(path, 'rb') as found, open(installed, 'rb') as ours:
        if found.read() != ours.read():
            raise _invalid(place, 'artifact %s is not the installed '
                                  'tacker_clickos/mgmt_driver.py' % name)
