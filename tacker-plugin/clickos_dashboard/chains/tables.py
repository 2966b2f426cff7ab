# SPDX-License-Identifier: Apache-2.0
"""The tables of chains, and of a chain's hops."""

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from horizon import tables

from clickos_dashboard import actions
from clickos_dashboard.api import chains
from clickos_dashboard import policies
from clickos_dashboard import rows
from clickos_dashboard import searching
from clickos_dashboard.vnfs import tables as vnf_tables


def _rules(*names):
    """Return rules of Neutron, all of which have to allow an action."""
    return tuple((policies.CHAINS, name) for name in names)


#: A hop is a group of pairs of ports.
_HOP = ('create_port_pair_group', 'create_port_pair')


#: What changes the packets of a chain.
CHANGE = _rules('update_port_chain', 'create_flow_classifier')


class Create(tables.LinkAction):
    """Opens the form of a new chain."""

    name = 'create'
    verbose_name = _('Create chain')
    url = 'horizon:clickos:chains:create'
    classes = ('ajax-modal',)
    icon = 'plus'
    policy_rules = _rules('create_port_chain', 'create_flow_classifier',
                          *_HOP)


class Delete(actions.Delete):
    """Deletes chains."""

    policy_rules = _rules('delete_port_chain')
    help_text = _('Its packets take the direct way again. The VNFs stay.')

    @staticmethod
    def action_present(count):
        """Name the action."""
        return ngettext_lazy('Delete chain', 'Delete chains', count)

    @staticmethod
    def action_past(count):
        """Name what was done."""
        return ngettext_lazy('Deleted chain', 'Deleted chains', count)

    def delete(self, request, obj_id):
        """Delete one."""
        chains.delete(request, obj_id)


class Chains(searching.Searched):
    """One chain a row."""

    nothing = _('There is no chain yet. Launch the VNFs of its hops on one'
                ' network first, then create it.')

    name = tables.WrappingColumn('name', verbose_name=_('Name'),
                                 link='horizon:clickos:chains:detail')
    path = tables.WrappingColumn('path', verbose_name=_('Hops'))
    symmetric = tables.Column(
        'symmetric', verbose_name=_('Answers return through the hops'),
        filters=(lambda yes: _('yes') if yes else _('no'),),
        classes=('clickos-wide',))

    class Meta(object):
        """Settings for Horizon."""

        name = 'chains'
        verbose_name = _('Chains')
        row_class = rows.Row
        table_actions = (Create, Delete)
        row_actions = (Delete,)

    def get_object_display(self, datum):
        """Return a chain's name."""
        return datum.name


class Insert(tables.LinkAction):
    """Opens the form that inserts a hop."""

    name = 'insert'
    verbose_name = _('Insert hop')
    classes = ('ajax-modal',)
    icon = 'plus'
    policy_rules = _rules('update_port_chain', *_HOP)

    def get_link_url(self, datum=None):
        """Return the form's address."""
        return reverse('horizon:clickos:chains:insert',
                       args=(self.table.kwargs['chain_id'],))


class UpdateVnf(tables.LinkAction):
    """Opens the form with the properties of a hop's VNF, such as rules."""

    name = 'update_vnf'
    verbose_name = _('Update properties')
    classes = ('ajax-modal',)
    policy_rules = vnf_tables.Update.policy_rules

    def allowed(self, request, hop=None):
        """Only a VNF has properties."""
        return bool(hop.vnf_id)

    def get_link_url(self, datum=None):
        """Return the form's address."""
        return reverse('horizon:clickos:vnfs:update', args=(datum.vnf_id,))


class _HopAction(actions.Batch):
    """An action on hops of the chain of the address."""

    policy_rules = _rules('update_port_chain')

    def change(self, request, chain_id, group_id):
        """Change the chain."""
        raise NotImplementedError

    def act(self, request, obj_id):
        """Change the chain for one hop."""
        self.change(request, self.table.kwargs['chain_id'], obj_id)


class Remove(_HopAction):
    """Removes hops."""

    name = 'remove'
    action_type = 'danger'
    help_text = _('Packets of the chain pass it no more. The VNF stays.')

    @staticmethod
    def action_present(count):
        """Name the action."""
        return ngettext_lazy('Remove hop', 'Remove hops', count)

    @staticmethod
    def action_past(count):
        """Name what was done."""
        return ngettext_lazy('Removed hop', 'Removed hops', count)

    def allowed(self, request, hop=None):
        """The only hop stays."""
        return hop is None or not (hop.first and hop.last)

    def change(self, request, chain_id, group_id):
        """Remove the hop."""
        chains.remove(request, chain_id, group_id)


class _Move(_HopAction):
    """Moves a hop by one place."""

    step = None

    @staticmethod
    def action_past(count):
        """Name what was done."""
        return ngettext_lazy('Moved hop', 'Moved hops', count)

    def change(self, request, chain_id, group_id):
        """Move the hop."""
        chains.move(request, chain_id, group_id, self.step)


class MoveUp(_Move):
    """Moves a hop towards the beginning."""

    name = 'up'
    step = -1

    @staticmethod
    def action_present(count):
        """Name the action."""
        return ngettext_lazy('Move up', 'Move up', count)

    def allowed(self, request, hop=None):
        """The first hop stays."""
        return hop is None or not hop.first


class MoveDown(_Move):
    """Moves a hop towards the end."""

    name = 'down'
    step = 1

    @staticmethod
    def action_present(count):
        """Name the action."""
        return ngettext_lazy('Move down', 'Move down', count)

    def allowed(self, request, hop=None):
        """The last hop stays."""
        return hop is None or not hop.last


class Hops(tables.DataTable):
    """One hop a row, in the order of the chain."""

    name = tables.WrappingColumn('name', verbose_name=_('Hop'))

    class Meta(object):
        """Settings for Horizon."""

        name = 'hops'
        verbose_name = _('Hops')
        row_class = rows.Row
        table_actions = (Insert,)
        row_actions = (UpdateVnf, MoveUp, MoveDown, Remove)
        multi_select = False

    def get_object_display(self, datum):
        """Return a hop's name."""
        return datum.name
