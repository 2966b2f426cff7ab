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
from clickos_dashboard import exceptions as our_exceptions
from clickos_dashboard.vnfs import fields


#: The handler that ends a router.
_STOP = 'stop'


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
        """Send what changed, and show the verdict."""
        vnf = self.initial['vnf']
        wanted = {name: value for name, value
                  in fields.values(self._live, data).items()
                  if vnf.properties.get(name) != value}
        if not wanted:
            messages.info(request, _('Every value is as before.'))
            return True
        try:
            verdict = tacker.update_properties(request, vnf, wanted)
        except our_exceptions.RECOVERABLE as exc:
            self._refuse(_('The update was not accepted: %s'), wanted, exc)
            return False
        if verdict and verdict.get('verdict') != 'accepted':
            self._refuse(_('The update is not in force: %s'), wanted,
                         our_exceptions.TackerError(
                             400, str(verdict.get('message') or '')))
            return False
        _tell(request, vnf, verdict)
        return True

    def _refuse(self, text, wanted, exc):
        """Show a reason at the field that it is about.

        :param text: for a reason that names no property
        :param wanted: the values that were sent
        """
        place = fields.refused(self._live, exc)
        if place is None and len(wanted) == 1 and getattr(
                exc, 'status', None) == 400:
            place = fields.PREFIX + next(iter(wanted)), text % exc
        self.add_error(*(place or (None, text % exc)))


def _tell(request, vnf, verdict):
    """Say whether an update is in force already."""
    if verdict is None:
        messages.info(request, _('Updating "%s"; there is no verdict yet.')
                      % vnf.name)
    else:
        messages.success(request, _('Updated "%s".') % vnf.name)


class ScaleForm(forms.SelfHandlingForm):
    """An aspect, a direction and steps."""

    aspect = django_forms.ChoiceField(label=_('Aspect'))
    kind = django_forms.ChoiceField(label=_('Direction'), choices=(
        ('SCALE_OUT', _('More guests')), ('SCALE_IN', _('Fewer guests'))))
    steps = django_forms.IntegerField(label=_('Steps'), min_value=1,
                                      initial=1)
    sure = django_forms.BooleanField(required=False)

    def __init__(self, request, *args, **kwargs):
        super().__init__(request, *args, **kwargs)
        self.fields['aspect'].choices = [
            (aspect, _('%(aspect)s, now at level %(level)s')
             % {'aspect': aspect, 'level': level})
            for aspect, level in self.initial['vnf'].scale]
        self.fields['sure'].label = _(
            'Fewer guests: end guests of "%s". Their connections end too.'
        ) % self.initial['vnf'].name

    def clean(self):
        """Fewer guests need a tick."""
        data = super().clean()
        if data.get('kind') == 'SCALE_IN' and not data.get('sure'):
            self.add_error('sure', _('Guests end only if you tick this.'))
        return data

    def handle(self, request, data):
        """Start to scale."""
        vnf = self.initial['vnf']
        try:
            tacker.start(request, vnf.id, 'scale', type=data['kind'],
                         aspectId=data['aspect'],
                         numberOfSteps=data['steps'])
        except Exception as exc:
            exceptions.handle(request,
                              _('The VNF does not scale: %s') % exc)
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
        elif self.initial['name'].rpartition('.')[2] == _STOP:
            self.fields['sure'] = django_forms.BooleanField(label=_(
                'End the router of "%s". It forwards nothing until its server'
                ' is rebooted.') % self.initial['guest'])

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
        messages.success(request, _said(revision)
                         % {'name': name, 'revision': revision})
        return True


def _said(revision):
    """Say what the guest did, and what its next start repeats."""
    if revision.commands:
        return _('%(name)s is done. A restart of the guest does not repeat'
                 ' it.')
    if revision.edits:
        return _('%(name)s is written. It is not kept: a restart of the guest'
                 ' begins without this change.')
    return _('%(name)s is written, revision %(revision)d.')
