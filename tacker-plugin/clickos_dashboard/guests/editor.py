# SPDX-License-Identifier: Apache-2.0
"""The editor of a guest's configuration: check, compare, replace, undo."""

import functools

from clickos_client import api as clickos_api
from clickos_client import checker
from clickos_client import vnf as client_vnf
from django.conf import settings
from django.http import HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import messages
from horizon import views
from keystoneauth1 import exceptions as ks_exc
from openstack_dashboard import api
from openstack_dashboard import policy

from clickos_dashboard.api import sessions
from clickos_dashboard.guests import difference
from clickos_dashboard.guests import revisions
from clickos_dashboard.guests import turns

#: What the guest's messages call the text.
NAME = 'dashboard'
MAX_FAULTS = 50
_HANDLER = 'config'
_REPLACE = (('clickos', 'clickos:configuration:replace'),)
_INDEX = 'horizon:clickos:vnfs:index'
#: Bounds of click-check, which reads a tenant's text: bytes, seconds.
_BOUNDS = ('prlimit', '--as=1073741824', '--cpu=5', '--nofile=16',
           '--core=0', '--')


class EditorView(views.HorizonTemplateView):
    """The page with the text."""

    template_name = 'clickos/editor.html'
    page_title = _('Configuration of {{ server.name }}')
    http_method_names = ('get', 'post')

    @property
    def server_id(self):
        """The UUID of the address as text."""
        return str(self.kwargs['server_id'])

    @functools.cached_property
    def server(self):
        """The server of the address; one of another project is not found."""
        try:
            return api.nova.server_get(self.request, self.server_id)
        except Exception:
            exceptions.handle(self.request, _('No such guest.'),
                              redirect=reverse(_INDEX))

    @functools.cached_property
    def running(self):
        """The configuration that runs."""
        return self._client().read(self.server_id, _HANDLER)

    def get_context_data(self, **kwargs):
        """Add the text that runs, or that is being edited."""
        context = super().get_context_data(**kwargs)
        vnf_id = self.server.metadata.get(client_vnf.SERVER_KEY)
        context.update(
            server=self.server, vnf_id=vnf_id,
            earlier=revisions.earlier(self.request, self.server_id),
            replaceable=not vnf_id and policy.check(
                _REPLACE, self.request,
                {'project_id': self.request.user.tenant_id}))
        context.setdefault('text', self._or_complain())
        return context

    def post(self, request, *args, **kwargs):
        """Do what the button says, and show the page with the result."""
        text = request.POST.get('text', '').replace('\r\n', '\n')
        actions = {'check': self._check, 'compare': self._compare,
                   'replace': self._replace, 'undo': self._undo}
        act = actions.get(request.POST.get('action'), self._check)
        self.server  # leaves the page if there is none
        try:
            with turns.turn(request):
                result = act(text)
        except turns.Busy:
            result = {'refusal': _(
                'Another check or comparison of yours has not ended.')}
        except (clickos_api.ClickOSError, ks_exc.ClientException) as exc:
            result = {'refusal': str(exc), 'faults': _placed(str(exc))}
        if isinstance(result, HttpResponseRedirect):
            return result
        return self.render_to_response(
            self.get_context_data(**{'text': text, **result}))

    def _client(self):
        return sessions.clickos(self.request)

    def _or_complain(self):
        try:
            return self.running
        except Exception:
            exceptions.handle(self.request, _(
                'The guest does not show its configuration.'))
            return ''

    def _check(self, text):
        """Return the faults that click-check finds."""
        program = getattr(settings, 'CLICKOS_CHECK_PROGRAM',
                          checker.PROGRAM)
        ports = self._client().list_ports(self.server_id)
        try:
            lines = checker.faults(program, text, len(ports),
                                   before=_BOUNDS)
        except checker.CheckerError as exc:
            return {'unchecked': str(exc)}
        return {'checked': not lines,
                'faults': _placed('\n'.join(lines))}

    def _compare(self, text):
        """Return the difference between what runs and the text."""
        try:
            found = difference.between(self.running, text)
        except difference.TooLong:
            return {'refusal': _('The texts are too long to compare; the'
                                 ' limit is %d bytes.')
                    % difference.MAX_BYTES}
        return {'difference': found}

    def _replace(self, text):
        """Check, then let the guest take the text or keep its own."""
        checked = self._check(text)
        if checked.get('faults'):
            return checked
        return self._install(text)

    def _install(self, text):
        before = self.running
        revision = self._client().replace_config(self.server_id, text, NAME)
        revisions.keep(self.request, self.server_id, before, revision)
        messages.success(self.request, _(
            'The guest runs the new configuration, revision %d.') % revision)
        return HttpResponseRedirect(self.request.path)

    def _undo(self, _text):
        """Give the guest an earlier configuration again."""
        wanted = self.request.POST.get('revision')
        for entry in revisions.earlier(self.request, self.server_id):
            if str(entry['revision']) == wanted:
                return self._install(entry['text'])
        return {'refusal': _('This configuration is not kept any more.')}


def _placed(text):
    """Return (line, column, fault) of each line of a refusal.

    Line and column are empty if the message names no place in the text.
    """
    found = []
    for line in text.splitlines()[:MAX_FAULTS]:
        place = checker.PLACE.match(line)
        found.append((int(place['line']), int(place['column']),
                      place['fault']) if place else ('', '', line))
    return found
