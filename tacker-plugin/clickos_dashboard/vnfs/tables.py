# SPDX-License-Identifier: Apache-2.0
"""The tables of VNFs, and of a VNF's guests, ports and operations."""

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from horizon import tables

from clickos_dashboard import actions
from clickos_dashboard.api import networks
from clickos_dashboard.api import tacker
from clickos_dashboard import exceptions
from clickos_dashboard import rows
from clickos_dashboard import searching

#: Lines of a VNF in the list; its page has all of them.
_MAX_LINES = 6
_LCM = 'os_nfv_orchestration_api:vnf_instances:'


def _rules(operation):
    return (('nfv-orchestration', _LCM + operation),)


class Launch(tables.LinkAction):
    """Opens the list of packages to launch from."""

    name = 'launch'
    verbose_name = _('Launch VNF')
    url = 'horizon:clickos:vnfs:choose'
    icon = 'cloud-upload'
    policy_rules = _rules('instantiate')


class Update(tables.LinkAction):
    """Opens the form with the properties that can change."""

    name = 'update'
    verbose_name = _('Update properties')
    url = 'horizon:clickos:vnfs:update'
    classes = ('ajax-modal',)
    policy_rules = _rules('update_vnf')

    def allowed(self, request, vnf=None):
        """Only a launched VNF has properties in force."""
        return vnf.launched and vnf.status != 'working'


class Scale(tables.LinkAction):
    """Opens the form that scales."""

    name = 'scale'
    verbose_name = _('Scale')
    url = 'horizon:clickos:vnfs:scale'
    classes = ('ajax-modal',)
    policy_rules = _rules('scale')

    def allowed(self, request, vnf=None):
        """Only a VNF with scaling aspects scales."""
        return bool(vnf.launched and vnf.scale and vnf.status != 'working')


class Heal(actions.Batch):
    """Replaces the guests of VNFs."""

    name = 'heal'
    asks = True
    policy_rules = _rules('heal')
    help_text = _('Each guest is replaced by a new one. It keeps its'
                  ' addresses and the handler values that it accepted.')

    @staticmethod
    def action_present(count):
        """Name the action."""
        return ngettext_lazy('Heal VNF', 'Heal VNFs', count)

    @staticmethod
    def action_past(count):
        """Name what was done."""
        return ngettext_lazy('Healing VNF', 'Healing VNFs', count)

    def allowed(self, request, vnf=None):
        """Only a launched VNF has guests."""
        return vnf.launched and vnf.status != 'working'

    def act(self, request, obj_id):
        """Start to heal all guests of one."""
        tacker.start(request, obj_id, 'heal', cause='asked in Horizon')


class Terminate(actions.Batch):
    """Removes the guests of VNFs."""

    name = 'terminate'
    action_type = 'danger'
    policy_rules = _rules('terminate')
    help_text = _('The guests end, and their ports are removed.')

    @staticmethod
    def action_present(count):
        """Name the action."""
        return ngettext_lazy('Terminate VNF', 'Terminate VNFs', count)

    @staticmethod
    def action_past(count):
        """Name what was done."""
        return ngettext_lazy('Terminating VNF', 'Terminating VNFs', count)

    def allowed(self, request, vnf=None):
        """Only a launched VNF has guests."""
        return vnf.launched and vnf.status != 'working'

    def act(self, request, obj_id):
        """Start to terminate one."""
        tacker.start(request, obj_id, 'terminate',
                     terminationType='FORCEFUL')


class _Decision(actions.Batch):
    """Decides about failed operations, which Tacker holds for that."""

    #: what happens; the question names the operation after it
    effect = ''

    def allowed(self, request, vnf=None):
        """Only about an operation that waits."""
        return bool(vnf and vnf.operation
                    and vnf.operation.state == 'FAILED_TEMP')

    def update(self, request, datum):
        """Let the question name the operation."""
        super().update(request, datum)
        if datum and datum.operation:
            self.help_text = _('%(effect)s It is %(name)s of %(began)s.') % {
                'effect': self.effect, 'name': datum.operation.name,
                'began': datum.operation.began}

    def decide(self, request, operation_id):
        """Tell Tacker what is decided."""
        raise NotImplementedError

    def act(self, request, obj_id):
        """Decide about the last operation of one."""
        operation = tacker.vnf(request, obj_id).operation
        if operation is None or operation.state != 'FAILED_TEMP':
            raise exceptions.TackerError(409, _(
                'no operation waits for a decision any more'))
        self.decide(request, operation.id)


class Retry(_Decision):
    """Begins failed operations again."""

    name = 'retry'
    asks = True
    policy_rules = _rules('retry')
    effect = _('Tacker begins the failed operation again, with the same'
               ' request.')

    @staticmethod
    def action_present(count):
        """Name the action."""
        return ngettext_lazy('Retry operation', 'Retry operations', count)

    @staticmethod
    def action_past(count):
        """Name what was done."""
        return ngettext_lazy('Retrying operation', 'Retrying operations',
                             count)

    def decide(self, request, operation_id):
        """Begin it again."""
        tacker.retry_operation(request, operation_id)


class GiveUp(_Decision):
    """Ends failed operations, so that others can start."""

    name = 'give_up'
    policy_rules = _rules('fail')
    action_type = 'danger'
    effect = _('The failed operation ends, and cannot be retried. Other'
               ' operations can start then.')

    @staticmethod
    def action_present(count):
        """Name the action."""
        return ngettext_lazy('Give up operation', 'Give up operations', count)

    @staticmethod
    def action_past(count):
        """Name what was done."""
        return ngettext_lazy('Gave up operation', 'Gave up operations', count)

    def decide(self, request, operation_id):
        """Give it up."""
        tacker.fail_operation(request, operation_id)


class Delete(actions.Delete):
    """Deletes VNFs that are not launched."""

    policy_rules = _rules('delete')

    @staticmethod
    def action_present(count):
        """Name the action."""
        return ngettext_lazy('Delete VNF', 'Delete VNFs', count)

    @staticmethod
    def action_past(count):
        """Name what was done."""
        return ngettext_lazy('Deleted VNF', 'Deleted VNFs', count)

    def allowed(self, request, vnf=None):
        """A launched VNF has to be terminated first."""
        return vnf is None or not vnf.launched and vnf.status != 'working' \
            and not (vnf.operation and vnf.operation.state == 'FAILED_TEMP')

    def delete(self, request, obj_id):
        """Delete one."""
        tacker.delete_vnf(request, obj_id)


class UpdatingRow(rows.Row):
    """A row that asks for its VNF again while an operation continues."""

    ajax = True

    def get_data(self, request, vnf_id):
        """Return the VNF with its connections."""
        return networks.connected(request, [tacker.vnf(request, vnf_id)])[0]


STATUS = (('new', _('Not launched')), ('working', _('Working')),
          ('active', _('Active')), ('degraded', _('Degraded')),
          ('failed', _('Failed')))


def _addresses(vnf):
    """Return a line for each port: point, addresses, network."""
    lines = [f'{each.point}: {each.shown_addresses} ({each.network})'
             for each in vnf.connections]
    more = len(lines) - _MAX_LINES
    return '\n'.join(lines[:_MAX_LINES] + (
        [_('and %d more') % more] if more > 0 else []))


class Vnfs(searching.Searched):
    """One VNF a row."""

    name = tables.WrappingColumn('name', verbose_name=_('Name'),
                                 link='horizon:clickos:vnfs:detail')
    product = tables.Column('product', verbose_name=_('Product'),
                            classes=('clickos-wide',))
    guests = tables.Column(lambda vnf: len(vnf.guests),
                           verbose_name=_('Guests'),
                           classes=('clickos-wide',))
    addresses = tables.WrappingColumn(
        _addresses, verbose_name=_('Connection points'), empty_value='–',
        classes=('clickos-lines',))
    status = tables.Column(
        'status', verbose_name=_('Status'), status=True,
        display_choices=STATUS, status_choices=(
            ('new', True), ('active', True), ('degraded', False),
            ('failed', False)))
    states_of = 'status'
    nothing = _('There is no VNF yet. Launch one from a package.')
    reason = tables.WrappingColumn('reason', verbose_name=_('Reason'))

    class Meta(object):
        """Settings for Horizon."""

        name = 'vnfs'
        verbose_name = _('VNFs')
        row_class = UpdatingRow
        status_columns = ('status',)
        table_actions = (Launch, Delete)
        row_actions = (Retry, GiveUp, Update, Heal, Scale, Terminate,
                       Delete)

    def get_object_display(self, datum):
        """Return a VNF's name."""
        return datum.name


class Operations(searching.Searched):
    """One operation a row."""

    states_of = 'state'
    nothing = _('There was no operation on the VNF yet.')

    name = tables.Column('name', verbose_name=_('Operation'))
    state = tables.Column('state', verbose_name=_('State'))
    began = tables.Column('began', verbose_name=_('Began'))
    reason = tables.WrappingColumn('reason', verbose_name=_('Reason'))
    request = tables.Column(
        'request', verbose_name=_('Request (JSON for the CLI)'),
        classes=('clickos-json',))

    class Meta(object):
        """Settings for Horizon."""

        name = 'operations'
        verbose_name = _('Operations')
        row_class = rows.Row


def _handler_page(handler):
    """Return the address of a handler's page."""
    panel, owner = 'guests', ()
    if handler['vnf_id']:
        panel, owner = 'vnfs', (handler['vnf_id'],)
    return reverse(f'horizon:clickos:{panel}:handler', args=(
        *owner, handler['server_id'], handler['name']))


class Handlers(searching.Searched):
    """One handler a row."""

    nothing = _('The guest has no handler.')

    name = tables.Column('name', verbose_name=_('Handler'))
    read = tables.Column('read', verbose_name=_('Read'))
    write = tables.Column('write', verbose_name=_('Write'))

    class Meta(object):
        """Settings for Horizon."""

        name = 'handlers'
        verbose_name = _('Handlers')
        template = 'clickos/_handlers_table.html'

    def get_rows(self):
        """Return plain rows: Horizon's own take 5 ms each, of 300 or more."""
        return [{**each, 'page': _handler_page(each)}
                for each in self.data]

    def get_object_id(self, datum):
        """Return what tells one from the others."""
        return datum['name']

    def get_object_display(self, datum):
        """Return a handler's name."""
        return datum['name']
