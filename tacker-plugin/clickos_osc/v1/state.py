# SPDX-License-Identifier: Apache-2.0
"""openstack clickos state show | save | clear | list | restore."""

import base64

from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc.v1 import config
from clickos_osc.v1 import guest

document = lazy.module('clickos_client.document')

_CONFIGURATION = '(configuration)'


class ShowState(guest.EachGuestCommand, command.Lister):
    """List the configuration and writes that a restart repeats.

    This is the desired state: the configuration of config replace, then the
    last accepted value of each handler, the last written last.

    Examples:
      openstack clickos state show --vnf edge-firewall
      openstack clickos state show --vnf edge-firewall --all
    """

    def take_action(self, parsed_args):
        """Ask and return columns and rows."""
        clickos = self.app.client_manager.clickos

        def rows_of(target):
            with formatting.refusals():
                return _kept(clickos.show_state(target))
        return self.table(parsed_args, ('Handler', 'Value'), rows_of)


def _kept(state):
    """Return a row for the configuration, if any, and for each write."""
    replaced = state.get('configuration')
    first = [(_CONFIGURATION, replaced['config_name'])] if replaced else []
    return [(formatting.line(name), formatting.text(value))
            for name, value in [*first, *state['writes']]]


class SaveState(guest.GuestCommand):
    """Print user data with which another server begins as this guest.

    It has the configuration that the guest runs and the writes of state
    show. Variables such as $PORT0_IP get the addresses of the new server.
    Writes in the user data of the first server, counters, flows and learned
    tables are not part of it.

    Example: openstack clickos state save my-firewall > fw.json
    """

    def take_action(self, parsed_args):
        """Ask for both, and print them as one document."""
        manager = self.app.client_manager
        target = guest.find(manager, parsed_args)
        with formatting.refusals():
            state = manager.clickos.show_state(target)
            text = config.running(manager, target)
            newest = manager.clickos.show_state(target)
        if state != newest:
            raise exceptions.CommandError(
                f'{formatting.line(parsed_args.guest)}: changed while it'
                ' was read;'
                ' try again')
        self.app.stdout.write(_document(state, text) + '\n')


def _document(state, text):
    """Return the user data of a guest with a state, as text."""
    replaced = state.get('configuration')
    name = replaced['config_name'] if replaced else document.DEFAULT_NAME
    found = document.Configuration(document.without_ports(text), name,
                                   state['writes'])
    try:
        return base64.b64decode(found.user_data()).decode()
    except document.TooLong as exc:
        raise exceptions.CommandError(str(exc))


class ClearState(guest.EachGuestCommand):
    """Forget the configuration and writes that a restart repeats.

    The running guest keeps its configuration and values. When it starts
    again, it has those of its user data or its VNF.

    Examples:
      openstack clickos state clear --vnf edge-firewall
      openstack clickos state clear --vnf edge-firewall --all
    """

    def take_action(self, parsed_args):
        """Forget, and say how much."""
        for short, target in self.each(parsed_args):
            self._clear(guest.led(formatting.line(parsed_args.guest), short)
                        .rstrip(), target)

    def _clear(self, label, target):
        """Forget the state of one guest, and say how much."""
        clickos = self.app.client_manager.clickos
        with formatting.refusals():
            state = clickos.show_state(target)
            clickos.delete_desired_state(target)
        self.app.stdout.write(
            f'{label}:'
            f'{" configuration and" if state.get("configuration") else ""}'
            f' {len(state["writes"])} handler writes forgotten; the running'
            ' guest keeps its values until it starts again\n')


class ListState(guest.EachGuestCommand, command.Lister):
    """List the latest changes of a guest, with the guest's verdicts.

    Examples:
      openstack clickos state list --vnf edge-firewall
      openstack clickos state list --vnf edge-firewall --all
    """

    def take_action(self, parsed_args):
        """Ask and return columns and rows."""
        clickos = self.app.client_manager.clickos

        def rows_of(target):
            with formatting.refusals():
                return [_change(each) for each in clickos.changes(target)]
        return self.table(parsed_args, ('Number', 'Time', 'Status',
                                        'Revision', 'Error'), rows_of)


def _change(each):
    return (each['number'], each['created_at'], each['status'],
            each.get('revision', ''),
            formatting.line((each.get('error') or {}).get('message', '')))


class RestoreState(guest.GuestCommand):
    """Give a guest the values and configuration of an earlier revision.

    The guest gets its configuration again if a handler had no value at that
    revision. For the guest of a VNF such a restore is refused.

    Example: openstack clickos state restore --vnf edge-firewall 7
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('revision', metavar='<revision>', type=int,
                            help='Of openstack clickos state list')
        return parser

    def take_action(self, parsed_args):
        """Restore and say so."""
        manager = self.app.client_manager
        with formatting.refusals():
            revision = manager.clickos.restore(
                guest.find(manager, parsed_args), parsed_args.revision)
        self.app.stdout.write(
            f'{formatting.line(parsed_args.guest)}: revision'
            f' {parsed_args.revision} is in force again, as revision'
            f' {revision}\n')
