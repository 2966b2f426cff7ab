# SPDX-License-Identifier: Apache-2.0
"""The wizard that launches a VNF."""

from django import forms as django_forms
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import workflows
from openstack_dashboard import api

from clickos_dashboard.api import networks
from clickos_dashboard.api import tacker
from clickos_dashboard.vnfs import fields

_NETWORK, _ADDRESS, _PREFIX = 'network_', 'address_', 'prefix_'
#: The choice that makes a network.
_NEW = 'new'


class DetailsAction(workflows.Action):
    """Name and cloud."""

    name = django_forms.CharField(label=_('Name'), max_length=255)
    description = django_forms.CharField(label=_('Description'),
                                         max_length=1024, required=False)
    vim = django_forms.ChoiceField(label=_('Cloud (VIM)'))

    class Meta(object):
        """Settings for Horizon."""

        name = _('Details')
        slug = 'details'
        help_text = _('The name appears in the list of VNFs.')

    def populate_vim_choices(self, request, context):
        """List the project's VIMs, the default one first."""
        try:
            return [(vim['id'], vim['name']) for vim in tacker.vims(request)]
        except Exception:
            exceptions.handle(request, _('Tacker does not list VIMs.'))
            return []


class Details(workflows.Step):
    """The first step."""

    action_class = DetailsAction
    depends_on = ('package', 'descriptor')
    contributes = ('name', 'description', 'vim')


class NetworksAction(workflows.Action):
    """A network, and perhaps an address, for each connection point."""

    class Meta(object):
        """Settings for Horizon."""

        name = _('Networks')
        slug = 'networks'
        help_text = _('Each connection point gets a port in a network.'
                      ' Without an address Neutron chooses one. A new'
                      ' network gets the name of its connection point.')

    def __init__(self, request, context, *args, **kwargs):
        super().__init__(request, context, *args, **kwargs)
        choices = [*_networks(request), (_NEW, _('A new network'))]
        for point in context['descriptor'].connection_points:
            self.fields[_NETWORK + point.name] = django_forms.ChoiceField(
                label=_('Network of %s') % point.name, choices=choices)
            self.fields[_ADDRESS + point.name] = \
                django_forms.GenericIPAddressField(
                    label=_('Address of %s') % point.name, protocol='IPv4',
                    required=False)
            self.fields[_PREFIX + point.name] = fields.Prefix(
                label=_('Addresses of a new network of %s') % point.name,
                required=False, help_text=_('Such as 10.20.0.0/24; only for'
                                            ' a new network.'))

    def clean(self):
        """A new network needs its addresses."""
        data = super().clean()
        for name in [each for each in self.fields
                     if each.startswith(_NETWORK)]:
            prefix = _PREFIX + name.removeprefix(_NETWORK)
            if data.get(name) == _NEW and not data.get(prefix) \
                    and prefix not in self.errors:
                self.add_error(prefix, _('A new network needs addresses.'))
        return data


class Networks(workflows.Step):
    """The second step."""

    action_class = NetworksAction
    depends_on = ('descriptor',)
    contributes = ('links', 'prefixes')

    def contribute(self, data, context):
        """Turn the fields into SOL003's extVirtualLinks."""
        if data:
            context['links'] = [
                _link(point.name, data[_NETWORK + point.name],
                      data.get(_ADDRESS + point.name))
                for point in context['descriptor'].connection_points]
            context['prefixes'] = {
                point.name: data.get(_PREFIX + point.name)
                for point in context['descriptor'].connection_points
                if data[_NETWORK + point.name] == _NEW}
        return context


class PropertiesAction(workflows.Action):
    """A field for each property."""

    class Meta(object):
        """Settings for Horizon."""

        name = _('Properties')
        slug = 'properties'
        help_text = _('An empty field takes the default of the descriptor.')

    def __init__(self, request, context, *args, **kwargs):
        super().__init__(request, context, *args, **kwargs)
        for prop in context['descriptor'].properties:
            self.fields[fields.PREFIX + prop.name] = fields.of(prop)


class Properties(workflows.Step):
    """The last step."""

    action_class = PropertiesAction
    depends_on = ('descriptor',)
    contributes = ('properties',)

    def contribute(self, data, context):
        """Turn the fields into values."""
        if data is not None:
            context['properties'] = fields.values(
                context['descriptor'].properties, data)
        return context


class Launch(workflows.Workflow):
    """Makes a VNF and instantiates it."""

    slug = 'launch_vnf'
    name = _('Launch VNF')
    finalize_button_name = _('Launch')
    success_message = _('Launching "%s".')
    failure_message = _('"%s" was not launched.')
    success_url = 'horizon:clickos:vnfs:index'
    default_steps = (Details, Networks, Properties)

    def format_status_message(self, message):
        """Name the VNF."""
        return message % self.context.get('name', '')

    def handle(self, request, context):
        """Ask Tacker; it goes on after the answer."""
        vnf_id, made = None, []
        try:
            self._make_networks(request, context, made)
            vnf_id = tacker.create_vnf(
                request, context['package']['vnfdId'], context['name'],
                context['description'])
            tacker.start(request, vnf_id, 'instantiate', **body(context))
            return True
        except Exception as exc:
            self.add_error_to_step(str(exc), 'details')
            if vnf_id:
                tacker.delete_vnf(request, vnf_id)
            networks.remove(request, made)
            # Horizon then shows the form again, with the error.
            raise django_forms.ValidationError(str(exc))

    def _make_networks(self, request, context, made):
        """Make the new networks, and name them in the links.

        :param made: is filled with the ids
        """
        for link in context['links']:
            if link['resourceId'] == _NEW:
                link['resourceId'] = networks.make(
                    request, f'{context["name"]}-{link["id"]}',
                    context['prefixes'][link['id']], made)


def body(context):
    """Return the request that instantiates: what the CLI takes as JSON."""
    wanted = {
        'flavourId': context['descriptor'].flavour,
        'vimConnectionInfo': [{'id': 'vim', 'vimType': 'openstack',
                               'vimId': context['vim']}],
        'extVirtualLinks': context['links']}
    if context.get('properties'):
        wanted['additionalParams'] = {
            'clickos_properties': context['properties']}
    return wanted


def _networks(request):
    try:
        found = api.neutron.network_list_for_tenant(
            request, request.user.tenant_id)
        return [(network.id, network.name_or_id) for network in found]
    except Exception:
        exceptions.handle(request, _('Neutron does not list networks.'))
        return []


def _link(point, network_id, address):
    link = {'id': point, 'resourceId': network_id}
    config = {'cpProtocolData': [{'layerProtocol': 'IP_OVER_ETHERNET'}]}
    if address:
        config['cpProtocolData'][0]['ipOverEthernet'] = {'ipAddresses': [
            {'type': 'IPV4', 'fixedAddresses': [address]}]}
    return {**link, 'extCps': [{'cpdId': point, 'cpConfig': [config]}]}
