# SPDX-License-Identifier: Apache-2.0
"""The groups of elements that a configuration needs in its guest's image.

The program click-check has the one list of classes and groups. A package may
name its groups, for a Tacker without the program.
"""

import json

from clickos_client import bounded
from clickos_client import checker
from oslo_config import cfg
from oslo_log import log as logging

from tacker_clickos import conf

LOG = logging.getLogger(__name__)

MAX_FAULTS = 20
#: Configurations of a package that the program reads, and their bytes as JSON.
#: The guests judge further ones.
MAX_CONFIGURATIONS, MAX_BYTES = 16, 1 << 20
_CURE = 'docs/reference/elements.md has the element classes of guests'
#: click-check reads a tenant's text.
LIMITS = bounded.Limits(cpu_s=2, memory_bytes=1 << 30, wall_s=10)


def find(text):
    """Return {group: a class of it} of a configuration.

    :returns: None without the program
    :raises checker.ConfigurationError: if no guest has a class
    """
    conf.register()
    try:
        return checker.groups(cfg.CONF.clickos.check_program, text, _run)
    except checker.CheckerError as error:
        LOG.warning('the groups of a configuration are not known: %s', error)
        return None


def needed(text, named=None):
    """Return {group: a class of it} that an image has to have.

    :param named: those that the package names, or None
    :returns: None if they are not known; the guest judges then
    """
    try:
        found = find(text)
    except checker.ConfigurationError:
        return None
    return named if found is None else found


def faults(configurations):
    """Return what is wrong with the configurations of a package, as texts.

    :param configurations: [file name, text, {group: class} that the package
        names or None] of each
    """
    found = []
    for name, text, named in configurations:
        try:
            groups = find(text)
        except checker.ConfigurationError as error:
            found += str(error).replace('<stdin>', name).splitlines()
            if 'class' in str(error) or 'in a guest' in str(error):
                found.append(_CURE)
            continue
        lacking = {} if named is None or groups is None else {
            group: groups[group] for group in groups.keys() - named.keys()}
        if lacking:
            found.append(
                '%s: the policy does not name the groups of elements %s, '
                'which the configuration needs; build the package again with '
                'build_csar.py, or remove groups from the policy'
                % (name, shown(lacking)))
    return found[:MAX_FAULTS]


class Budget:
    """Which configurations of a package the program reads."""

    def __init__(self):
        self._count, self._bytes = MAX_CONFIGURATIONS, MAX_BYTES

    def takes(self, text):
        """Tell whether a configuration is one of them."""
        self._count -= 1
        self._bytes -= len(json.dumps(text))
        return min(self._count, self._bytes) >= 0


def shown(groups):
    """Return a text of {group: class}."""
    return ', '.join('%s (class %s)' % each for each in sorted(
        groups.items()))


def _run(command, text, error):
    return bounded.run(command, text, error, LIMITS)
