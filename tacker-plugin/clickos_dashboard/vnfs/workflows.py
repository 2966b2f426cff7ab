# SPDX-License-Identifier: Apache-2.0
"""The wizard that launches a VNF."""

import dataclasses

from clickos_client import connections
from django import forms as django_forms
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import workflows
from openstack_dashboard import api

from clickos_dashboard.api import networks
from clickos_dashboard.api import tacker
from clickos_dashboard import exceptions as our_exceptions
from clickos_dashboard.vnfs import addresses
from clickos_dashboard.vnfs import fields

_NETWORK, _ADDRESS, _PREFIX = 'network_', 'address_', 'prefix_'
_MAX_NAME = 255
#: The choice that makes a network.
_NEW = 'new'


class DetailsAction(workflows.Action):
    """Name and cloud."""

    name = django_forms.CharField(label=_('Name'), max_length=_MAX_NAME)
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
    """A network, and perhaps addresses, for each connection point."""

    class Meta(object):
        """Settings for Horizon."""

        name = _('Networks')
        slug = 'networks'
        help_text = _('Each connection point gets a port in a network.'
                      ' Without an address Neutron chooses one of each'
                      ' family. Commas or spaces stand between several. A new'
                      ' network gets the name of its connection point.')

    def __init__(self, request, context, *args, **kwargs):
        super().__init__(request, context, *args, **kwargs)
        self._known = {network.id: network for network in _networks(request)}
        choices = [(network.id, addresses.of_network(network))
                   for network in self._known.values()]
        choices.append((_NEW, _('A new network')))
        for point in context['descriptor'].connection_points:
            self.fields[_NETWORK + point.name] = django_forms.ChoiceField(
                label=_('Network of %s') % point.name, choices=choices)
            self.fields[_ADDRESS + point.name] = addresses.Addresses(
                label=_('Addresses of %s') % point.name, required=False,
                help_text=_('IPv4, IPv6 or both, such as 10.0.0.5,'
                            ' 2001:db8::5.'))
            self.fields[_PREFIX + point.name] = addresses.Prefixes(
                label=_('Subnets of a new network of %s') % point.name,
                required=False, help_text=_(
                    'IPv4, IPv6 or both, such as 10.20.0.0/24,'
                    ' 2001:db8::/64. Only for a new network.'))

    def clean(self):
        """A new network needs subnets, and addresses are of a subnet."""
        data = super().clean()
        for name in [each.removeprefix(_NETWORK) for each in self.fields
                     if each.startswith(_NETWORK)]:
            self._clean_point(data, name)
        return data

    def _clean_point(self, data, name):
        chosen, prefixes = data.get(_NETWORK + name), data.get(_PREFIX + name)
        if chosen == _NEW and prefixes == []:
            self.add_error(_PREFIX + name, _('A new network needs subnets.'))
        if chosen != _NEW and prefixes:
            self.add_error(_PREFIX + name, _('Only for a new network.'))
        try:
            for address in data.get(_ADDRESS + name) or ():
                self._check(address, chosen, prefixes or ())
        except django_forms.ValidationError as exc:
            self.add_error(_ADDRESS + name, exc)

    def _check(self, address, chosen, prefixes):
        """Refuse an address that the chosen network cannot give."""
        if chosen == _NEW and prefixes:
            addresses.check(address, [_Subnet(each) for each in prefixes])
        elif chosen in self._known:
            addresses.check(address, self._known[chosen].subnets)


@dataclasses.dataclass(frozen=True)
class _Subnet:
    """A subnet that the launch will make."""

    cidr: str


class Networks(workflows.Step):
    """The second step."""

    action_class = NetworksAction
    depends_on = ('descriptor',)
    contributes = ('links', 'prefixes')

    def contribute(self, data, context):
        """Turn the fields into SOL003's extVirtualLinks, if all are right."""
        if self.action.is_bound and self.action.is_valid():
            context['links'] = [
                connections.link(point.name, data[_NETWORK + point.name],
                                 data.get(_ADDRESS + point.name) or ())
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
        """Ask Tacker; it continues after the answer."""
        vnf_id, made = None, []
        try:
            self._make_networks(request, context, made)
            vnf_id = tacker.create_vnf(
                request, context['package']['vnfdId'], context['name'],
                context['description'])
            tacker.start(request, vnf_id, 'instantiate', **body(context))
            return True
        except Exception as exc:
            self._show(exc)
            if vnf_id:
                tacker.delete_vnf(request, vnf_id)
            networks.remove(request, made)
            # Horizon then shows the form again, with the error.
            raise django_forms.ValidationError(our_exceptions.reason(exc))

    def _show(self, exc):
        """Show why the launch failed, at the field that it is about."""
        place = fields.refused(self.context['descriptor'].properties, exc)
        if isinstance(exc, _NetworkRefused):
            self._at_field('networks', _PREFIX + exc.point, str(exc))
        elif place:
            self._at_field('properties', *place)
        else:
            self.add_error_to_step(our_exceptions.reason(exc), 'details')

    def _at_field(self, slug, name, reason):
        step = self.get_step(slug)
        step.action.add_error(name, reason)
        # The form opens at the step.
        step.has_errors = True

    def _make_networks(self, request, context, made):
        """Make the new networks, and name them in the links.

        :param made: is filled with the ids
        """
        for link in context['links']:
            if link['resourceId'] != _NEW:
                continue
            try:
                link['resourceId'] = networks.make(
                    request, _network_name(context['name'], link['id']),
                    context['prefixes'][link['id']], made)
            except Exception as exc:
                raise _NetworkRefused(link['id'], our_exceptions.reason(exc))


class _NetworkRefused(Exception):
    """Neutron does not make the new network of a connection point."""

    def __init__(self, point, reason):
        super().__init__(reason)
        self.point = point


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


def _network_name(vnf, point):
    """Return the name of a new network, which Neutron bounds."""
    return f'{vnf[:_MAX_NAME - len(point) - 1]}-{point}'


def _networks(request):
    try:
        return api.neutron.network_list_for_tenant(
            request, request.user.tenant_id)
    except Exception:
        exceptions.handle(request, _('Neutron does not list networks.'))
        return []
