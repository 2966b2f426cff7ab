# SPDX-License-Identifier: Apache-2.0
"""openstack clickos event list."""

import dataclasses
import datetime
import json
import time

from keystoneauth1 import exceptions as ks_exc
from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc.v1 import guest

api = lazy.module('clickos_client.api')
tacker = lazy.module('clickos_osc.tacker')

_COLUMNS = ('Time', 'Of', 'Event', 'State', 'Detail')
_INTERVAL_S = 1
_REBOOT = 'reboot'


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened to a VNF or to a guest."""

    time: str
    of: str
    name: str
    state: str
    detail: str

    @property
    def row(self):
        """The event as the columns have it."""
        return dataclasses.astuple(self)


class ListEvent(guest.GuestCommand, command.Lister):
    """List what happened to a guest, or to a VNF and its guests.

    A VNF has the operations of Tacker, such as SCALE, with their errors. A
    guest has the actions of Nova, such as create, reboot, and stop for one
    that died, and clickos-api's reasons why it did not start. Times are in
    UTC, and the newest event comes last.

    Examples:
      openstack clickos event list --vnf edge-firewall
      openstack clickos event list --vnf edge-firewall --follow
    """

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        #: {server: (what its actions were, _reasons())}
        self._known = {}

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--follow', action='store_true',
            help='Continue until Ctrl-C: print each event and each change of'
                 ' its state on a line, with -f json as an object')
        return parser

    def run(self, parsed_args):
        """Show the list, or follow the events."""
        if not parsed_args.follow:
            return super().run(parsed_args)
        try:
            self._follow(parsed_args)
        except KeyboardInterrupt:
            return 0

    def take_action(self, parsed_args):
        """Ask and return columns and rows."""
        return _COLUMNS, [each.row for each in self._events(parsed_args)]

    def _follow(self, args):
        """Print what is new, each second."""
        known = set()
        while True:
            for event in self._events(args):
                if event not in known:
                    known.add(event)
                    self.app.stdout.write(_line(event, args.formatter))
            self.app.stdout.flush()
            _pause()

    def _events(self, args):
        manager = self.app.client_manager
        found, servers = [], []
        if args.kind == 'vnf':
            source = tacker.Tacker(manager)
            vnf_id = guest.find(manager, args).id
            vnf = source.vnf(vnf_id)
            found = [_operation(each)
                     for each in reversed(source.operations(vnf_id))]
            guests = (guest.named(vnf, args.vnfc) if args.vnfc
                      else vnf.guests)
            servers = [(each.server_id, each.vdu) for each in guests
                       if each.server_id]
        else:
            servers = [(guest.server_id(manager, args), args.guest)]
        compute = manager.sdk_connection.compute
        for server_id, name in servers:
            actions = list(compute.server_actions(server_id))
            reasons = self._reasons(server_id, actions)
            found += [_action(compute, server_id, name, each,
                              reasons.get(each.request_id, ()))
                      for each in actions]
        return sorted(found, key=lambda event: event.time)

    def _reasons(self, server_id, actions):
        """Return why a guest did not start, {request id: [reason]}.

        To follow a guest costs no further request while nothing happens.

        :returns: {} while clickos-api does not answer
        """
        key = [(each.request_id, each.message,
                getattr(each, 'updated_at', None)) for each in actions]
        known, reasons = self._known.get(server_id, (None, {}))
        if key == known:
            return reasons
        has_more = any(each.message or each.action == _REBOOT
                       for each in actions)
        try:
            reasons = self.app.client_manager.clickos.start_failures(
                api.Server(server_id)) if has_more else {}
        except (api.ClickOSError, ks_exc.ClientException):
            return {}
        self._known[server_id] = key, reasons
        return reasons


def _pause():
    time.sleep(_INTERVAL_S)


def _operation(each):
    return Event(_time(each.began), 'vnf', formatting.line(each.name),
                 formatting.line(each.state), formatting.line(each.reason))


def _action(compute, server_id, name, each, reasons):
    """Return an action of Nova; one that failed with its reason.

    Nova reports a reboot as a success if the old guest continues. Its policy
    decides who sees the details of other failures.

    :param reasons: why hosts did not start the guest
    """
    has_failed = each.message or reasons and each.action == _REBOOT
    detail = '; '.join(reasons)
    if each.message and not detail:
        steps = compute.get_server_action(each.request_id, server_id).events
        detail = '; '.join(step.details for step in steps or ()
                           if getattr(step, 'details', None))
    return Event(_time(each.start_time), formatting.line(name),
                 formatting.line(each.action), 'FAILED' if has_failed else '',
                 formatting.line(detail or each.message or ''))


def _time(text):
    """Return a time of Tacker or Nova in one form, to whole seconds."""
    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise exceptions.CommandError(f'{formatting.line(text)}: not a time')
    if when.tzinfo:
        when = when.astimezone(datetime.timezone.utc)
    return when.strftime('%Y-%m-%dT%H:%M:%SZ')


def _line(event, form):
    if form == 'json':
        return json.dumps(dict(zip(_COLUMNS, event.row))) + '\n'
    return '\t'.join(event.row).rstrip() + '\n'
