# SPDX-License-Identifier: Apache-2.0
"""The groups of elements that a configuration needs in its guest's image.

The program click-check has the one list of classes and groups. A package may
name its groups, for a Tacker without the program.
"""

import collections
import contextlib
import dataclasses
import hashlib
import json
import threading
import time

from clickos_client import bounded
from clickos_client import checker
from oslo_config import cfg
from oslo_log import log as logging

from tacker_clickos import conf
from tacker_clickos.package import fair_queue

LOG = logging.getLogger(__name__)

MAX_FAULTS = 20
#: Characters of a fault.
_MAX_TEXT = 400
#: Configurations of a package that the program reads, and their bytes as JSON.
#: The guests judge further ones.
MAX_CONFIGURATIONS, MAX_BYTES = 16, 1 << 20
#: Seconds that the program may take for all of them.
MAX_S = 6
#: Programs of this process at the same time; each may take LIMITS' memory.
MOST_PROGRAMS = 2
#: All that wait are served: a conductor has them in bounded threads.
_ANY = 1 << 30
#: Answers of the program that are kept.
_MOST_KEPT = 256
#: What the statements in front of a pair's configuration need.
_OF_PAIR = {'ha': 'VRRP'}
_CURE = 'docs/reference/elements.md has the element classes of guests'
#: click-check reads a tenant's text.
LIMITS = bounded.Limits(cpu_s=2, memory_bytes=1 << 30, wall_s=10)

#: Projects take turns.
_programs = fair_queue.FairQueue(MOST_PROGRAMS, _ANY, _ANY)


class _Answers:
    """Groups, None or errors of texts, the latest ones."""

    def __init__(self):
        self._lock = threading.Lock()
        self._kept = collections.OrderedDict()

    def of(self, key, make):
        """Return the answer to a key; make it if it is not known.

        :param make: returns the answer, and whether it is to be kept
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        answer, is_lasting = make()
        if is_lasting:
            with self._lock:
                self._kept[key] = answer
                if len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
        return answer


_answers = _Answers()


def find(text, allowance):
    """Return {group: a class of it} of a configuration.

    The guests of a VDU have one text, which the program reads once.

    :param allowance: Allowance, which is charged
    :returns: None without the program, or if its time is over
    :raises checker.ConfigurationError: if no guest has a class
    """
    conf.register()
    program = cfg.CONF.clickos.check_program
    found = _answers.of(
        (program, hashlib.sha256(text.encode(errors='replace')).digest()),
        lambda: _ask(program, text, allowance))
    if isinstance(found, Exception):
        raise found
    return found


def _ask(program, text, allowance):
    """Return groups, None or ConfigurationError, and whether it lasts."""
    with _programs.entry(allowance.owner) as place, place, \
            allowance.charged() as limits:
        if limits is None:
            return None, False

        def run(command, text, error):
            return bounded.run(command, text, error, limits)
        try:
            return checker.groups(program, text, run), True
        except checker.ConfigurationError as error:
            return error, True
        except checker.CheckerError as error:
            LOG.warning('the groups of a configuration are not known: %r',
                        str(error))
            # The same text would take as long again.
            return None, isinstance(error, checker.Ended) \
                and limits.cpu_s == LIMITS.cpu_s


def needed(text, named, allowance, is_pair=False):
    """Return {group: a class of it} that an image has to have.

    :param named: those that the package names, or None
    :param allowance: as of find()
    :param is_pair: the elements of pairs come before the text
    :returns: None if they are not known; the guest judges then
    """
    try:
        found = find(text, allowance)
        found = named if found is None else found
    except checker.ConfigurationError:
        found = None
    return {**(found or {}), **_OF_PAIR} if is_pair else found


def faults(configurations, allowance):
    """Return what is wrong with the configurations of a package, as texts.

    :param configurations: [file name, text, {group: class} that the package
        names or None] of each
    :param allowance: as of find()
    """
    found = []
    for name, text, named in configurations:
        try:
            groups = find(text, allowance)
        except checker.ConfigurationError as error:
            found += [line[:_MAX_TEXT] for line in str(error).replace(
                '<stdin>', name).splitlines()]
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
        """Return whether a configuration is one of them."""
        self._count -= 1
        self._bytes -= len(json.dumps(text))
        return min(self._count, self._bytes) >= 0


class Allowance:
    """The time that the program has for a tenant's request.

    :param owner: the project, whose turn it takes
    """

    def __init__(self, owner, seconds=MAX_S, clock=time.monotonic):
        self.owner = owner
        self._left_s, self._clock = seconds, clock

    @contextlib.contextmanager
    def charged(self):
        """Charge the time within; yields limits, or None if it is over."""
        begun_s = self._clock()
        try:
            yield dataclasses.replace(
                LIMITS, cpu_s=min(LIMITS.cpu_s, self._left_s),
                wall_s=min(LIMITS.wall_s, 2 * self._left_s)) \
                if self._left_s > 0 else None
        finally:
            self._left_s -= self._clock() - begun_s


def shown(groups):
    """Return a text of {group: class}."""
    return ', '.join('%s (class %s)' % each for each in sorted(
        groups.items()))
