# SPDX-License-Identifier: Apache-2.0
"""The pages of VNFs."""

import functools

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import forms
from horizon import tabs
from horizon import views
from horizon import workflows
from openstack_dashboard import policy

from clickos_dashboard.api import descriptor
from clickos_dashboard.api import networks
from clickos_dashboard.api import sessions
from clickos_dashboard.api import tacker
from clickos_dashboard.packages import views as package_views
from clickos_dashboard import paging
from clickos_dashboard.vnfs import forms as vnf_forms
from clickos_dashboard.vnfs import tables as vnf_tables
from clickos_dashboard.vnfs import tabs as vnf_tabs
from clickos_dashboard.vnfs import workflows as vnf_workflows

_INDEX = 'horizon:clickos:vnfs:index'
_DETAIL = 'horizon:clickos:vnfs:detail'
_WRITE = (('clickos', 'clickos:handler:write'),)


class IndexView(paging.PagedView):
    """The list of VNFs."""

    table_class = vnf_tables.Vnfs
    page_title = _('VNFs')

    def get_data(self):
        """Ask Tacker."""
        try:
            return self.page(networks.connected(
                self.request, tacker.vnfs(self.request)))
        except Exception:
            exceptions.handle(self.request, _('Tacker does not list VNFs.'))
            return []


class ChooseView(views.HorizonTemplateView):
    """The packages to launch from."""

    template_name = 'clickos/choose.html'
    page_title = _('Launch VNF')

    def get_context_data(self, **kwargs):
        """Ask Tacker."""
        context = super().get_context_data(**kwargs)
        try:
            context['packages'] = [
                package_views.with_names(each)
                for each in tacker.packages(self.request)
                if each['onboardingState'] == 'ONBOARDED']
        except Exception:
            exceptions.handle(self.request,
                              _('Tacker does not list packages.'))
        return context


class LaunchView(workflows.WorkflowView):
    """The wizard."""

    workflow_class = vnf_workflows.Launch
    template_name = 'clickos/launch.html'
    ajax_template_name = 'clickos/_launch.html'

    def get_initial(self):
        """Give package and descriptor to the steps."""
        package_id = self.kwargs['package_id']
        try:
            return {'package': tacker.package(self.request, package_id),
                    'descriptor': descriptor.read(tacker.package_content(
                        self.request, package_id))}
        except Exception:
            exceptions.handle(self.request,
                              _('The package cannot be launched.'),
                              redirect=reverse(_INDEX))


class _VnfMixin(object):
    """A page about one VNF."""

    @functools.cached_property
    def vnf(self):
        """The VNF of the address; one of another project is not found."""
        try:
            return tacker.vnf(self.request, self.kwargs['vnf_id'])
        except Exception:
            exceptions.handle(self.request, _('No such VNF.'),
                              redirect=reverse(_INDEX))


class DetailView(_VnfMixin, tabs.TabbedTableView):
    """A VNF's page."""

    tab_group_class = vnf_tabs.VnfTabs
    template_name = 'clickos/vnf.html'
    page_title = '{{ vnf.name }}'

    def get_context_data(self, **kwargs):
        """Add the VNF and its actions."""
        context = super().get_context_data(**kwargs)
        table = vnf_tables.Vnfs(self.request)
        context.update(vnf=self.vnf, url=reverse(_INDEX),
                       actions=table.render_row_actions(self.vnf))
        return context

    def get_tabs(self, request, *args, **kwargs):
        """Give the VNF to the tabs."""
        return super().get_tabs(request, *args, **{
            **kwargs, 'vnf': self.vnf, 'guests': self.vnf.guests})


class _VnfFormView(_VnfMixin, forms.ModalFormView):
    """A form about one VNF; name is that of its address."""

    template_name = 'clickos/form.html'
    name = None

    @property
    def home(self):
        """The VNF's page."""
        return reverse(_DETAIL, args=(self.vnf.id,))

    def get_success_url(self):
        """Go back to the VNF."""
        return self.home

    def get_initial(self):
        """Give the VNF to the form."""
        return {'vnf': self.vnf}

    def get_context_data(self, **kwargs):
        """Add the VNF and the form's own address."""
        context = super().get_context_data(**kwargs)
        context['vnf'] = self.vnf
        context['submit_url'] = self.request.path
        return context


class UpdateView(_VnfFormView):
    """The form with the properties that can change."""

    form_class = vnf_forms.UpdateForm
    form_id = 'update_vnf'
    page_title = _('Update properties of {{ vnf.name }}')
    submit_label = _('Update')

    def get_initial(self):
        """Find the descriptor by the VNF's VNFD id."""
        initial = super().get_initial()
        try:
            package = next(
                each for each in tacker.packages(self.request)
                if each.get('vnfdId') == self.vnf.vnfd_id)
            initial['descriptor'] = descriptor.read(
                tacker.package_content(self.request, package['id']))
        except Exception:
            exceptions.handle(self.request,
                              _('The descriptor cannot be read.'),
                              redirect=self.get_success_url())
        return initial


class ScaleView(_VnfFormView):
    """The form that scales."""

    form_class = vnf_forms.ScaleForm
    form_id = 'scale_vnf'
    page_title = _('Scale {{ vnf.name }}')
    submit_label = _('Scale')


class HandlerView(_VnfFormView):
    """A handler: its value, and a new one."""

    form_class = vnf_forms.HandlerForm
    form_id = 'handler'
    template_name = 'clickos/handler.html'
    page_title = '{{ handler.name }}'
    submit_label = _('Write')
    tab = 'vnf__handlers'

    def get_success_url(self):
        """Go back to the handlers of the guest."""
        return (f'{self.home}?tab={self.tab}'
                f'&guest={self.kwargs["server_id"]}')

    @functools.cached_property
    def handler(self):
        """Name, read and write of the handler, and its value."""
        client = sessions.clickos(self.request)
        server_id, name = str(self.kwargs['server_id']), self.kwargs['name']
        try:
            found = next((h for h in client.list_handlers(server_id)
                          if h['name'] == name), None)
            if found and found['read']:
                return {**found, 'value': client.read(server_id, name)}
        except Exception:
            exceptions.handle(
                self.request, _('The guest does not show this handler.'),
                redirect=self.get_success_url())
        return found or {'name': name, 'read': False, 'write': False}

    def _guest(self):
        """Return the name of VNF and guest, or the server's id."""
        server_id = str(self.kwargs['server_id'])
        guests = self.vnf.guests if self.vnf else ()
        return next((f'{self.vnf.name} {each.name}' for each in guests
                     if each.server_id == server_id), server_id)

    def get_initial(self):
        """Give the present value to the form."""
        writable = self.handler['write'] and policy.check(_WRITE,
                                                          self.request)
        return {**super().get_initial(), 'name': self.handler['name'],
                'server_id': str(self.kwargs['server_id']),
                'guest': self._guest(), 'writable': writable,
                'value': self.handler.get('value', '')}

    def get_context_data(self, **kwargs):
        """Add the handler."""
        context = super().get_context_data(**kwargs)
        context['handler'] = self.handler
        context['writable'] = self.get_initial()['writable']
        return context
