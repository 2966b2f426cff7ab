# SPDX-License-Identifier: Apache-2.0
"""Waiting for operations of Tacker, with progress on standard error."""

import dataclasses
import time

from osc_lib import exceptions

from clickos_osc import formatting

_INTERVAL_S = 0.5
TIMEOUT_S = 600
#: What a shell says of a program that Ctrl-C ended.
INTERRUPTED = 130


@dataclasses.dataclass(frozen=True)
class Started:
    """An operation that Tacker took.

    :ivar id: of the operation; None for the VNF's newest
    """

    vnf_id: str
    name: str
    verb: str
    id: str | None

    def __str__(self):
        return f'{formatting.line(self.name)}: {self.verb}'


def add_options(parser):
    """Add --wait and --timeout."""
    parser.add_argument('--wait', action='store_true',
                        help='Wait for the end, with progress on standard'
                             ' error; exit status 1 if it fails')
    parser.add_argument('--timeout', metavar='<seconds>', type=_seconds,
                        default=TIMEOUT_S,
                        help=f'Limit of --wait, default {TIMEOUT_S}; the'
                             ' operation continues in Tacker')


class Interrupted(exceptions.CommandError):
    """Ctrl-C while a command waited; the text says what continues."""


class Waiter:
    """Waits for operations, all concurrently.

    :param source: tacker.Tacker
    :param log: writes a line of progress
    """

    def __init__(self, source, timeout_s, log):
        self._source = source
        self._timeout_s = timeout_s
        self._log = log

    def wait(self, started):
        """Return {Started: vnf.Operation}, each at its end.

        :raises CommandError: if the time is over, or at Ctrl-C
        """
        ended, seen = {}, {}
        deadline_s = time.monotonic() + self._timeout_s
        try:
            while True:
                try:
                    self._look(started, ended, seen)
                except exceptions.CommandError as exc:
                    raise exceptions.CommandError(_goes_on(
                        [each for each in started if each not in ended],
                        str(exc)))
                left = [each for each in started if each not in ended]
                if not left:
                    return ended
                if time.monotonic() > deadline_s:
                    raise exceptions.CommandError(_goes_on(
                        left, f'not over after {self._timeout_s:g} s'))
                pause()
        except KeyboardInterrupt:
            raise Interrupted(_goes_on(
                [each for each in started if each not in ended],
                'interrupted'))

    def one(self, started):
        """Wait for one operation.

        :raises CommandError: with its reason, if it failed
        """
        operation = self.wait([started])[started]
        fault = failure(started, operation)
        if fault:
            raise exceptions.CommandError(fault)
        return operation

    def _look(self, started, ended, seen):
        for each in started:
            if each in ended:
                continue
            operation = self._source.operation(each.vnf_id, each.id)
            state = operation.state if operation else 'STARTING'
            if seen.get(each) != state:
                seen[each] = state
                self._log(f'{each} {state}')
            if operation and not operation.under_way:
                ended[each] = operation


def failure(started, operation):
    """Return why an operation failed and how to go on, or None."""
    if operation.state == 'COMPLETED':
        return None
    name = formatting.line(started.name)
    reason = formatting.text(operation.reason) or 'Tacker gives no reason'
    advice = '' if operation.state != 'FAILED_TEMP' else (
        f'; "openstack clickos vnf retry {started.vnf_id}" tries again,'
        f' "openstack clickos vnf delete --force {started.vnf_id}" ends it')
    return f'{name}: {started.verb} {operation.state}: {reason}{advice}'


def pause():
    """Wait between two questions."""
    time.sleep(_INTERVAL_S)


def _goes_on(left, why):
    names = ', '.join(map(str, left))
    ids = ' '.join(each.vnf_id for each in left)
    return (f'{why}; in Tacker goes on: {names}; "openstack clickos vnf list"'
            f' shows the state of {ids}')


def _seconds(text):
    value = float(text)
    if not 0 < value <= 86400:
        raise ValueError(text)
    return value
