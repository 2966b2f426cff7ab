# SPDX-License-Identifier: Apache-2.0
"""openstack clickos vnf heal | scale | terminate | retry | delete."""

from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc.v1 import guest
from clickos_osc import waiting

tacker = lazy.module('clickos_osc.tacker')

_COLUMNS = ('ID', 'Name', 'Operation', 'State', 'Detail')
_ACCEPTED = 'ACCEPTED'
_MAX_CAUSE = 255


class Progress(command.Command):
    """A command that may wait; its progress goes to standard error."""

    def log_line(self, text):
        """Write a line of progress, unless --quiet was given."""
        if getattr(self.app.options, 'verbose_level', 1):
            self.app.stderr.write(text + '\n')
            self.app.stderr.flush()

    def waiter(self, source, args):
        """Return the Waiter of the command."""
        return waiting.Waiter(source, args.timeout, self.log_line)

    def run(self, parsed_args):
        """Run; Ctrl-C while it waits says what continues."""
        try:
            return super().run(parsed_args)
        except waiting.Interrupted as exc:
            self.app.stderr.write(f'{exc}\n')
            return waiting.INTERRUPTED


class VnfsCommand(Progress, command.Lister):
    """The same for several VNFs; the exit status is 1 if one fails.

    All names are looked up before anything is done.
    """

    verb = ''

    def get_parser(self, prog_name):
        """Add <vnf> and how to wait."""
        parser = super().get_parser(prog_name)
        parser.add_argument('vnf', metavar='<vnf>', nargs='+',
                            help='Name or ID of a VNF; several are handled'
                                 ' concurrently')
        waiting.add_options(parser)
        return parser

    def take_action(self, parsed_args):
        """Start all, wait for all, and return columns and rows."""
        source = tacker.Tacker(self.app.client_manager)
        vnfs = guest.find_vnfs(source, parsed_args.vnf)
        rows = {}
        started = {vnf.id: self._started(source, vnf, parsed_args, rows)
                   for vnf in vnfs}
        running = [each for each in started.values() if each]
        if parsed_args.wait and running:
            ended = self.waiter(source, parsed_args).wait(running)
            for each, operation in ended.items():
                self._ended(source, each, operation, rows)
        self.is_failed = any(row[-1] for row in rows.values())
        return _COLUMNS, [(vnf.id, formatting.line(vnf.name), *rows[vnf.id])
                          for vnf in vnfs]

    def run(self, parsed_args):
        """Show the rows; the exit status tells whether one failed."""
        self.is_failed = False
        return super().run(parsed_args) or int(self.is_failed)

    def start(self, source, vnf, args):
        """Start the operation; return its verb and id, None for no more."""
        raise NotImplementedError

    def ended(self, source, started, operation, rows):
        """Note how an operation ended."""
        fault = waiting.failure(started, operation) or ''
        rows[started.vnf_id] = started.verb, operation.state, fault

    def _ended(self, source, started, operation, rows):
        """End one; a refusal is a row and does not stop the others."""
        try:
            self.ended(source, started, operation, rows)
        except exceptions.CommandError as exc:
            rows[started.vnf_id] = self.verb, 'REFUSED', str(exc)

    def _started(self, source, vnf, args, rows):
        """Start one; a refusal is a row and does not stop the others."""
        try:
            begun = self.start(source, vnf, args)
        except exceptions.CommandError as exc:
            rows[vnf.id] = self.verb, 'REFUSED', str(exc)
            return None
        verb, operation_id = begun or (self.verb, None)
        rows[vnf.id] = verb, _ACCEPTED if begun else 'DONE', ''
        return begun and waiting.Started(vnf.id, vnf.name, verb, operation_id)


class HealVnf(VnfsCommand):
    """Restart the guests of VNFs, one after the other.

    The new guests have the same ports, addresses and accepted values. Tables,
    such as connections of a NAT, are lost. Without --vnfc the command heals
    all guests.

    Examples:
      openstack clickos vnf heal edge --wait
      openstack clickos vnf heal edge --vnfc VDU1-0 --cause crash --wait
    """

    verb = 'HEAL'

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('--vnfc', metavar='<vnfc>', action='append',
                            help='Heal only this guest, by its name such as'
                                 ' VDU1-0, its VDU or VNFC id; may be'
                                 ' repeated')
        parser.add_argument('--cause', metavar='<text>',
                            help='Reason, which the operation keeps')
        return parser

    def start(self, source, vnf, args):
        """Ask Tacker to heal."""
        if len(args.cause or '') > _MAX_CAUSE:
            raise exceptions.CommandError(
                f'--cause: {len(args.cause)} characters, the limit is'
                f' {_MAX_CAUSE}')
        body = {'cause': args.cause} if args.cause else {}
        if args.vnfc:
            body['vnfcInstanceId'] = [
                found.id for name in args.vnfc
                for found in guest.named(vnf, name)]
        return self.verb, source.start(vnf.id, 'heal', **body)


class TerminateVnf(VnfsCommand):
    """End the guests of VNFs; the VNFs remain, and can be deleted.

    Example: openstack clickos vnf terminate edge --wait
    """

    verb = 'TERMINATE'

    def start(self, source, vnf, args):
        """Ask Tacker to terminate."""
        return terminate(source, vnf)


class RetryVnf(VnfsCommand):
    """Try the failed operation of VNFs again.

    Example: openstack clickos vnf retry edge --wait
    """

    verb = 'RETRY'

    def start(self, source, vnf, args):
        """Ask Tacker to retry the last operation."""
        last = vnf.operation
        if last is None or last.state != 'FAILED_TEMP':
            state = f'{last.name} {last.state}' if last else 'none'
            raise exceptions.CommandError(
                f'{formatting.line(vnf.name)}: no operation waits for a'
                ' retry; the'
                f' last operation: {state}')
        source.decide(last.id, 'retry')
        return last.name, last.id


class DeleteVnf(VnfsCommand):
    """Delete VNFs that have no guest.

    With --force the command gives up a failed operation first, and
    terminates the VNF.

    Examples:
      openstack clickos vnf delete edge
      openstack clickos vnf delete edge --force
    """

    verb = 'DELETE'

    def get_parser(self, prog_name):
        """Add the argument."""
        parser = super().get_parser(prog_name)
        parser.add_argument('--force', action='store_true',
                            help='Give up a failed operation, terminate and'
                                 ' delete; waits for the end')
        return parser

    def take_action(self, parsed_args):
        """Delete; --force waits."""
        parsed_args.wait = parsed_args.wait or parsed_args.force
        return super().take_action(parsed_args)

    def start(self, source, vnf, args):
        """Delete, or begin to terminate."""
        if args.force:
            _give_up(source, vnf)
            if source.vnf(vnf.id).launched:
                return terminate(source, vnf)
        elif vnf.launched:
            raise exceptions.CommandError(
                f'{formatting.line(vnf.name)}: has guests; "openstack'
                ' clickos vnf'
                f' terminate {vnf.id} --wait" ends them, and --force does'
                ' both')
        source.delete(vnf.id)

    def ended(self, source, started, operation, rows):
        """Delete what is terminated."""
        super().ended(source, started, operation, rows)
        if not rows[started.vnf_id][-1]:
            source.delete(started.vnf_id)
            rows[started.vnf_id] = self.verb, 'DONE', ''


class ScaleVnf(Progress, command.ShowOne):
    """Bring a scaling aspect of a VNF to a level.

    Tacker scales by steps; the command computes their number and direction
    from the level that the VNF has.

    Example: openstack clickos vnf scale edge --level 1 --wait
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('vnf', metavar='<vnf>', help='Name or ID of a VNF')
        parser.add_argument('--aspect', metavar='<aspect>',
                            help='Scaling aspect, if the VNF has several')
        parser.add_argument('--level', metavar='<level>', type=int,
                            required=True, help='Wanted level, from 0')
        waiting.add_options(parser)
        return parser

    def take_action(self, parsed_args):
        """Compute the steps, ask Tacker, wait."""
        source = tacker.Tacker(self.app.client_manager)
        vnf, = guest.find_vnfs(source, [parsed_args.vnf])
        aspect, level = _aspect(vnf, parsed_args.aspect)
        steps = _steps(level, parsed_args.level)
        state = 'nothing to do'
        if steps:
            state = self._scale(source, vnf, aspect, steps, parsed_args)
        return zip(*(('id', vnf.id), ('name', formatting.line(vnf.name)),
                     ('aspect', formatting.line(aspect)), ('from', level),
                     ('to', parsed_args.level), ('state', state)))

    def _scale(self, source, vnf, aspect, steps, args):
        begun = waiting.Started(vnf.id, vnf.name, 'SCALE', source.start(
            vnf.id, 'scale', type='SCALE_OUT' if steps > 0 else 'SCALE_IN',
            aspectId=aspect, numberOfSteps=abs(steps)))
        return (self.waiter(source, args).one(begun).state if args.wait
                else _ACCEPTED)


def terminate(source, vnf):
    """Begin to terminate; return verb and operation id."""
    return 'TERMINATE', source.start(vnf.id, 'terminate',
                                     terminationType='FORCEFUL')


def _give_up(source, vnf):
    """Fail the operation that waits for a decision, if there is one."""
    last = vnf.operation
    if last and last.under_way:
        raise exceptions.CommandError(
            f'{formatting.line(vnf.name)}: {last.name} is under way')
    if last and last.state == 'FAILED_TEMP':
        source.decide(last.id, 'fail')


def _aspect(vnf, name):
    """Return the aspect's name and level."""
    levels = dict(vnf.scale)
    names = ', '.join(map(formatting.line, levels)) or 'none'
    if name is None and len(levels) == 1:
        (name,) = levels
    if name is None:
        raise exceptions.CommandError(
            f'{formatting.line(vnf.name)}: --aspect is needed; aspects that'
            ' scale:'
            f' {names}')
    if name not in levels:
        raise exceptions.CommandError(
            f'{formatting.line(vnf.name)}: no scaling aspect'
            f' {formatting.line(name)};'
            f' aspects that scale: {names}')
    return name, int(levels[name])


def _steps(level, wanted):
    """Return the steps to a level, below 0 to scale in."""
    if wanted < 0:
        raise exceptions.CommandError(
            f'--level {wanted}: expected 0 or more')
    return wanted - level
