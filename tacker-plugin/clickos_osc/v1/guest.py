# SPDX-License-Identifier: Apache-2.0
"""Commands on a guest, and which one it is."""

import re

from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import formatting
from clickos_osc import lazy

api = lazy.module('clickos_client.api')
tacker = lazy.module('clickos_osc.tacker')
outcomes = lazy.module('clickos_client.outcomes')


#: A word that can be a handler's name; an address and a number cannot.
_NAME = re.compile(r'([A-Za-z0-9_@/]+\.)?[A-Za-z0-9_]*[A-Za-z_][A-Za-z0-9_]*')
PARAMETER_HELP = (
    'ELEMENT.HANDLER, such as fw.config. A handler such as lookup takes a'
    ' parameter: quote both as one word, "routes.lookup 192.0.2.1". Addresses'
    ' and numbers need no quotes')


class GuestCommand(command.Command):
    """A command on one guest."""

    def get_parser(self, prog_name):
        """Add <guest> and how it is named."""
        parser = super().get_parser(prog_name)
        kind = parser.add_mutually_exclusive_group()
        kind.add_argument(
            '--server', dest='kind', action='store_const', const='server',
            default='server',
            help='<guest> is a server of Nova (the default)')
        kind.add_argument(
            '--vnf', dest='kind', action='store_const', const='vnf',
            help='<guest> is a VNF instance of Tacker')
        parser.add_argument(
            '--vnfc', metavar='<vnfc>',
            help='Guest of a VNF that has several: its name such as'
                 ' VDU1-0, VDU or VNFC id')
        parser.add_argument('guest', metavar='<guest>', help='Name or ID')
        return parser


class EachGuestCommand(GuestCommand):
    """A command on one guest, or with --all on each guest of a VNF."""

    def get_parser(self, prog_name):
        """Add --all."""
        parser = super().get_parser(prog_name)
        parser.add_argument('--all', action='store_true',
                            help='All guests of the VNF, by their short'
                                 ' names')
        return parser

    def each(self, parsed_args):
        """List (short name, guest); the name is '' without --all."""
        return targets(self.app.client_manager, parsed_args)

    def table(self, parsed_args, columns, rows_of):
        """Return columns and rows; of --all the first column is the guest.

        :param rows_of: returns the rows of a guest
        """
        rows = [(name, *row) if name else row
                for name, target in self.each(parsed_args)
                for row in rows_of(target)]
        return ('Guest', *columns) if parsed_args.all else columns, rows


def find(manager, args):
    """Return the api.Server or api.Vnf that the arguments name.

    :param manager: openstackclient's client manager
    """
    if args.kind == 'vnf':
        ids = vnf_ids(manager, args.guest)
        vnf_id = only_vnf(ids, args.guest)
        return api.Vnf(vnf_id, _vnfc(manager, vnf_id, args.vnfc))
    if args.vnfc:
        raise exceptions.CommandError('--vnfc goes with --vnf')
    return api.Server(find_server(manager, args.guest))


def targets(manager, args):
    """List (short name, guest); of --all each guest of the VNF."""
    if not args.all:
        return [('', find(manager, args))]
    return [(formatting.line(each.name), api.Vnf(vnf_id, each.id))
            for vnf_id, each in guests(manager, args)]


def guests(manager, args):
    """List (id of the VNF, guest) of the VNF that --all is about."""
    if args.kind != 'vnf' or args.vnfc:
        raise exceptions.CommandError('--all goes with --vnf, and without'
                                      ' --vnfc')
    source = tacker.Tacker(manager)
    vnf = source.vnf(only_vnf(source.ids(args.guest), args.guest))
    if not vnf.guests:
        raise exceptions.CommandError(outcomes.no_guest(vnf.id, vnf.launched))
    return [(vnf.id, each) for each in vnf.guests]


def led(name, text):
    """Put the short name of a guest before a text, if there is one."""
    return f'{name} {text}' if name else text


def reads(words):
    """Return the handlers that words name: a name, or (name, parameter).

    A parameter follows its name in the same word. A word that cannot be a
    name is a further part of the parameter before it.
    """
    found = []
    for word in words:
        name, _, parameter = word.partition(' ')
        if found and not _NAME.fullmatch(name):
            found[-1][1].append(word)
        else:
            found.append((name, [parameter.strip()] if parameter else []))
    return [(name, ' '.join(rest)) if rest else name for name, rest in found]


def label(read):
    """Return a read as its user wrote it."""
    return read if isinstance(read, str) else ' '.join(read)


def _vnfc(manager, vnf_id, name):
    """Return what clickos-api takes for a guest's name: a VNFC id or VDU."""
    if name is None:
        return None
    vnf = tacker.Tacker(manager).vnf(vnf_id)
    short = [each.id for each in vnf.guests if name == each.name]
    return short[0] if len(short) == 1 else name


def server_ids(manager, args):
    """Return the ids of the servers that the arguments name.

    :returns: at least one id; several only of a VNF without ``--vnfc``
    """
    found = find(manager, args)
    if isinstance(found, api.Server):
        return [found.id]
    vnf = tacker.Tacker(manager).vnf(found.id)
    guests = named(vnf, args.vnfc) if args.vnfc else vnf.guests
    ids = [each.server_id for each in guests if each.server_id]
    if not ids:
        raise exceptions.CommandError(
            outcomes.no_guest(vnf.id, vnf.launched))
    return ids


def server_id(manager, args):
    """Return the id of the one server that the arguments name."""
    ids = server_ids(manager, args)
    if len(ids) > 1:
        vnf = tacker.Tacker(manager).vnf(find(manager, args).id)
        raise exceptions.CommandError(
            f'VNF instance {vnf.id} has {len(ids)} such guests; name one with'
            f' --vnfc: {_names(vnf)}')
    return ids[0]


def named(vnf, name):
    """List the guests of a VNF with a short name, a VDU or a VNFC id.

    :raises CommandError: if there is none
    """
    found = [each for each in vnf.guests
             if name in (each.name, each.vdu, each.id)]
    if not found:
        raise exceptions.CommandError(
            f'VNF instance {vnf.id} has no guest {formatting.line(name)};'
            f' it has {_names(vnf)}')
    return found


def find_vnfs(source, names):
    """Return the vnf.Vnf of each name or id, each once.

    :raises CommandError: if a name is unknown or ambiguous
    """
    ids = dict.fromkeys(only_vnf(source.ids(name), name) for name in names)
    return [source.vnf(vnf_id) for vnf_id in ids]


def _names(vnf):
    return ', '.join(f'{formatting.line(each.name)} {each.id}'
                     for each in vnf.guests) or 'none'


def values(manager, found, words, max_age=None):
    """Return {name and parameter: value} of handlers of a guest.

    :param words: of the command line; see reads()
    :raises api.ClickOSError: if a handler has no value
    """
    asked = reads(words)
    if len(asked) == 1:
        return {label(asked[0]): _value(manager, found, asked[0], max_age)}
    read = manager.clickos.read_many(found, asked, max_age)
    for value in read.values():
        if isinstance(value, api.ClickOSError):
            raise value
    return {label(each): value for each, value in read.items()}


def _value(manager, found, read, max_age):
    name, parameter = (read, None) if isinstance(read, str) else read
    return manager.clickos.read(found, name, max_age, parameter)


def find_server(manager, name):
    """Return the id of a server, by name or id."""
    compute = manager.sdk_connection.compute
    return compute.find_server(name, ignore_missing=False).id


def vnf_ids(manager, name):
    """Return the ids of the VNF instances with a name, or with this id."""
    return tacker.Tacker(manager).ids(name)


def only_vnf(ids, name):
    """Return the one id of a VNF instance."""
    if not ids:
        raise exceptions.CommandError(
            f'No VNF instance found for {formatting.line(name)}')
    if len(ids) > 1:
        raise exceptions.CommandError(
            f'More than one VNF instance is called {formatting.line(name)};'
            ' use'
            f' an ID: {", ".join(ids)}')
    return ids[0]
