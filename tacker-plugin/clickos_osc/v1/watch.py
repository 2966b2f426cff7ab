# SPDX-License-Identifier: Apache-2.0
"""openstack clickos handler watch."""

import datetime
import json
import time

from osc_lib import exceptions

from clickos_osc import formatting
from clickos_osc.v1 import guest

_INTERVAL_S = (0.2, 3600.0)


class WatchHandler(guest.EachGuestCommand):
    """Read handlers again and again, and print each change.

    A line has the time in UTC, the handler and its new value; with -f json
    it is an object. The command ends with Ctrl-C, or after --count rounds.

    Example: openstack clickos handler watch --vnf edge-firewall
    passed.count

    Example: openstack clickos handler watch -f json --count 60 SERVER
    a.count b.count

    Example: openstack clickos handler watch --vnf edge --all passed.count

    Example: openstack clickos handler watch --vnf edge-router
    "routes.lookup ::1"
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('-f', '--format', choices=('value', 'json'),
                            default='value',
                            help='Format of the output (default: value)')
        parser.add_argument(
            '--interval', metavar='<seconds>', type=float, default=1.0,
            help='Seconds between two rounds, 0.2 to 3600, default 1')
        parser.add_argument('--count', metavar='<rounds>', type=int,
                            help='End after this number of rounds')
        parser.add_argument('handler', metavar='<handler>', nargs='+',
                            help=guest.PARAMETER_HELP)
        return parser

    def run(self, parsed_args):
        """Watch until Ctrl-C, which is no failure."""
        try:
            return super().run(parsed_args)
        except KeyboardInterrupt:
            return 0

    def take_action(self, parsed_args):
        """Ask each round, and print what changed."""
        _check(parsed_args)
        targets = self.each(parsed_args)
        known, rounds = {}, 0
        while True:
            values = self._values(targets, parsed_args.handler)
            for name, value in values.items():
                if known.get(name) != value:
                    known[name] = value
                    self.app.stdout.write(
                        _line(name, value, parsed_args.format))
            self.app.stdout.flush()
            rounds += 1
            if rounds == parsed_args.count:
                return
            _pause(parsed_args.interval)

    def _values(self, targets, words):
        """Return {name: value} of all guests."""
        found = {}
        for short, target in targets:
            with formatting.refusals():
                values = guest.values(self.app.client_manager, target, words)
            found.update((guest.led(short, name), value)
                         for name, value in values.items())
        return found


def _check(args):
    if not _INTERVAL_S[0] <= args.interval <= _INTERVAL_S[1]:
        raise exceptions.CommandError(
            f'--interval {args.interval}: not between {_INTERVAL_S[0]} and'
            f' {_INTERVAL_S[1]} s')
    if args.count is not None and args.count < 1:
        raise exceptions.CommandError(
            f'--count {args.count}: expected 1 or more')


def _pause(seconds):
    time.sleep(seconds)


def _line(name, value, form):
    when = datetime.datetime.now(datetime.timezone.utc).strftime(
        '%Y-%m-%dT%H:%M:%SZ')
    if form == 'json':
        return json.dumps({'time': when, 'handler': name,
                           'value': value}) + '\n'
    return (f'{when}\t{formatting.line(name)}\t'
            f'{formatting.line(value.rstrip(chr(10)))}\n')
