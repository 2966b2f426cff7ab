# SPDX-License-Identifier: Apache-2.0
"""Forms of a VNF: properties, scale, a handler."""

from clickos_client import api as clickos_api
from django import forms as django_forms
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import forms
from horizon import messages
from keystoneauth1 import exceptions as ks_exc

from clickos_dashboard.api import sessions
from clickos_dashboard.api import tacker
from clickos_dashboard import code
from clickos_dashboard.vnfs import fields


class UpdateForm(forms.SelfHandlingForm):
    """The properties that change while the VNF runs."""

    def __init__(self, request, *args, **kwargs):
        super().__init__(request, *args, **kwargs)
        self._live = [p for p in self.initial['descriptor'].properties
                      if p.live]
        in_force = self.initial['vnf'].properties
        for prop in self._live:
            self.fields[fields.PREFIX + prop.name] = fields.of(
                prop, in_force.get(prop.name))

    def handle(self, request, data):
        """Send what changed; the driver's verdict comes later."""
        vnf = self.initial['vnf']
        wanted = {name: value for name, value
                  in fields.values(self._live, data).items()
                  if vnf.properties.get(name) != value}
        if not wanted:
            messages.info(request, _('Every value is as before.'))
            return True
        try:
            tacker.update_vnf(request, vnf.id,
                              metadata={'clickos_properties': wanted})
        except Exception:
            exceptions.handle(request, _('The update was not accepted.'))
            return False
        messages.success(request, _('Updating "%s".') % vnf.name)
        return True


class ScaleForm(forms.SelfHandlingForm):
    """An aspect, a direction and steps."""

    aspect = django_forms.ChoiceField(label=_('Aspect'))
    kind = django_forms.ChoiceField(label=_('Direction'), choices=(
        ('SCALE_OUT', _('More guests')), ('SCALE_IN', _('Fewer guests'))))
    steps = django_forms.IntegerField(label=_('Steps'), min_value=1,
                                      initial=1)

    def __init__(self, request, *args, **kwargs):
        super().__init__(request, *args, **kwargs)
        self.fields['aspect'].choices = [
            (aspect, _('%(aspect)s, now at level %(level)s')
             % {'aspect': aspect, 'level': level})
            for aspect, level in self.initial['vnf'].scale]

    def handle(self, request, data):
        """Start to scale."""
        vnf = self.initial['vnf']
        try:
            tacker.start(request, vnf.id, 'scale', type=data['kind'],
                         aspectId=data['aspect'],
                         numberOfSteps=data['steps'])
        except Exception:
            exceptions.handle(request, _('The VNF does not scale.'))
            return False
        messages.success(request, _('Scaling "%s".') % vnf.name)
        return True


class HandlerForm(forms.SelfHandlingForm):
    """A handler's value; the guest's refusal stands at the field."""

    value = django_forms.CharField(
        label=_('Value'), required=False, strip=False,
        widget=code.CodeArea(attrs={'rows': 14, 'class': 'clickos-value'}))

    def __init__(self, request, *args, **kwargs):
        super().__init__(request, *args, **kwargs)
        if not self.initial['writable']:
            self.fields['value'].widget.attrs['readonly'] = True

    def handle(self, request, data):
        """Write; the guest takes the value or keeps its own."""
        name = self.initial['name']
        try:
            revision = sessions.clickos(request).write(
                self.initial['server_id'], name,
                data['value'].replace('\r\n', '\n'))
        except (clickos_api.ClickOSError, ks_exc.ClientException) as exc:
            self.add_error('value', str(exc))
            return False
        messages.success(
            request, _('%(name)s is written, revision %(revision)d.')
            % {'name': name, 'revision': revision})
        return True
