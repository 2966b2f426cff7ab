# SPDX-License-Identifier: Apache-2.0
"""The pages of chains."""

import dataclasses
import functools

from django.http import JsonResponse
from django.urls import reverse
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators import http
from horizon import decorators
from horizon import exceptions
from horizon import forms
from horizon import messages
from horizon import tables
from openstack_dashboard.api import neutron
from openstack_dashboard import policy

from clickos_dashboard.api import chains
from clickos_dashboard.api import tacker
from clickos_dashboard.chains import detail
from clickos_dashboard.chains import forms as chain_forms
from clickos_dashboard.chains import tables as chain_tables
from clickos_dashboard import exceptions as our_exceptions
from clickos_dashboard.overview import traffic
from clickos_dashboard import paging

_INDEX = 'horizon:clickos:chains:index'


class IndexView(paging.PagedView):
    """The list of chains."""

    table_class = chain_tables.Chains
    page_title = _('Chains')

    def get_data(self):
        """Ask Neutron."""
        try:
            return self.page(chains.all_chains(self.request))
        except Exception:
            exceptions.handle(self.request,
                              _('Neutron does not list chains.'))
            return []


class _ChainMixin(object):
    """A page about one chain; read asks for it."""

    read = staticmethod(chains.chain)

    @functools.cached_property
    def chain(self):
        """The chain of the address; one of another project is not found."""
        try:
            return self.read(self.request, self.kwargs['chain_id'])
        except Exception:
            exceptions.handle(self.request, _('No such chain.'),
                              redirect=reverse(_INDEX))


class DetailView(_ChainMixin, tables.DataTableView):
    """A chain's page: its packets, its hops, and their rates."""

    read = staticmethod(chains.whole_chain)
    table_class = chain_tables.Hops
    template_name = 'clickos/chain.html'
    page_title = '{{ chain.name }}'

    @functools.cached_property
    def detail(self):
        """The detail.Detail of the chain."""
        return self._ask(
            lambda request: detail.read(request, self.chain),
            detail.unknown(self.chain), _('Neutron does not list ports.'))

    def get_data(self):
        """List the hops."""
        return [dataclasses.replace(hop, vnf_id=each.vnf_id) for hop, each
                in zip(self.chain.hops, self.detail.hops)]

    def get_context_data(self, **kwargs):
        """Add the chain, its network, and whose ports its hops have."""
        context = super().get_context_data(**kwargs)
        found = self.detail
        network = found.network_id and self._ask(
            lambda request: chains.network_name(request, found.network_id),
            found.network_id, _('Neutron does not show the network.'))
        context.update(
            chain=self.chain, detail=found, network=network,
            changes_rules=policy.check(chain_tables.CHANGE, self.request),
            guests_a_time=traffic.MOST)
        return context

    def _ask(self, question, nothing, complaint):
        try:
            return question(self.request)
        except Exception:
            exceptions.handle(self.request, complaint)
            return nothing


class _FormView(forms.ModalFormView):
    """A form about chains."""

    template_name = 'clickos/form.html'

    def get_context_data(self, **kwargs):
        """Add the form's own address."""
        context = super().get_context_data(**kwargs)
        context['submit_url'] = self.request.path
        return context


class _HopsFormView(_FormView):
    """A form that chooses among the launched VNFs."""

    def get_initial(self):
        """List the VNFs."""
        try:
            vnfs = [vnf for vnf in tacker.vnfs(self.request) if vnf.launched]
        except Exception:
            vnfs = []
            exceptions.handle(self.request, _('Tacker does not list VNFs.'))
        return {'vnfs': vnfs}


class CreateView(_HopsFormView):
    """The form of a new chain."""

    form_class = chain_forms.CreateForm
    form_id = 'create_chain'
    page_title = _('Create chain')
    submit_label = _('Create')
    success_url = reverse_lazy(_INDEX)

    def get_initial(self):
        """List the networks, too."""
        try:
            networks = neutron.network_list_for_tenant(
                self.request, self.request.user.tenant_id)
        except Exception:
            networks = []
            exceptions.handle(self.request,
                              _('Neutron does not list networks.'))
        return {**super().get_initial(), 'networks': [
            (network.id, network.name_or_id) for network in networks]}


class _ChangeView(_ChainMixin, _FormView):
    """A form that changes the chain of the address."""

    def get_initial(self):
        """Add the chain."""
        return {**super().get_initial(), 'chain': self.chain}

    def get_success_url(self):
        """Go back to the chain."""
        return reverse('horizon:clickos:chains:detail',
                       args=(self.chain.id,))


class InsertView(_ChangeView, _HopsFormView):
    """The form that inserts a hop."""

    form_class = chain_forms.InsertForm
    form_id = 'insert_hop'
    page_title = _('Insert hop')
    submit_label = _('Insert')


class RuleView(_ChangeView):
    """The form that changes which packets enter the chain."""

    read = staticmethod(chains.whole_chain)
    form_class = chain_forms.RuleForm
    form_id = 'change_rule'
    page_title = _('Change rule')
    submit_label = _('Change')

    def get_initial(self):
        """Add the rule; lead back if the chain does not have it."""
        initial = super().get_initial()
        rule = next((each for each in self.chain.rules
                     if each.id == str(self.kwargs['rule_id'])), None)
        if rule is None:
            messages.error(self.request, _('The chain has no such rule.'))
            raise exceptions.Http302(self.get_success_url())
        return {**initial, 'rule': rule}


@http.require_POST
@decorators.require_auth
def order(request, chain_id):
    """Give the hops the order of the list "hop"; answer {} or the reason."""
    try:
        chains.reorder(request, chain_id, request.POST.getlist('hop'))
    except our_exceptions.RECOVERABLE as exc:
        return JsonResponse({'error': str(exc)}, status=409)
    return JsonResponse({})


@http.require_GET
@decorators.require_auth
def counters(request, chain_id):
    """Return the counters of a chain as JSON; clickos-api judges the id."""
    try:
        counted = chains.counters(request, chain_id)
    except our_exceptions.RECOVERABLE as exc:
        return JsonResponse({'error': str(exc)}, status=502)
    answer = JsonResponse({'counters': counted})
    answer['Cache-Control'] = 'no-store'
    return answer
