# SPDX-License-Identifier: Apache-2.0
"""Texts of tenants and guests reach no page as markup."""

import io
import json
import re
import types
from unittest import mock
import zipfile

from django.core.files import uploadedfile
from django.urls import reverse
from openstack_dashboard import api

from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import test_chains

#: Each part alone would break out of its place on a page.
EVIL = '"\'><script>alert(1)</script><img src=x onerror=alert(2)>{$ 7 $}'
#: What must not stand on a page; Angular runs what {$ $} encloses.
_RAW = ('<script>alert(1)', '<img src=x', '"\'><', '{$ 7')
#: Angular evaluates nothing there, and no tag can begin.
_LEFT_ALONE = re.compile(
    r'(<(?:pre|textarea)\b[^<>]*\bng-non-bindable[^<>]*>)'
    r'(?:[^<]|</?span\b[^<]*)*')
_GUEST = f'GET /v1/servers/{cloud.SERVER}/handlers'
_VNF = f'/vnflcm/v1/vnf_instances/{cloud.VNF}'
_PACKAGE = f'/vnfpkgm/v1/vnf_packages/{cloud.PACKAGE}'


def evil_csar():
    """Return a package whose every name is hostile."""
    evil = json.dumps(EVIL)
    definitions = f'''
description: {evil}
topology_template:
  substitution_mappings: {{properties: {{flavour_id: {evil}}}}}
  node_templates:
    {evil}:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {{description: {evil}}}
      artifacts: {{click: {{file: a.click}}}}
      capabilities:
        virtual_compute:
          properties: {{virtual_memory: {{virtual_mem_size: {evil}}}}}
    cp {evil[1:-1]}:
      type: tosca.nodes.nfv.VduCp
      requirements: [{{virtual_binding: {evil}}}]
  policies:
    - a:
        type: clickos.policies.Configuration
        targets: [{evil}]
        properties:
          artifact: click
          properties:
            {evil}:
              type: {evil}
              description: {evil}
              default: {evil}
              handler: {evil}
            e: {{type: enum, values: [{evil}], default: {evil}}}
'''
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w') as csar:
        csar.writestr('TOSCA-Metadata/TOSCA.meta', 'Entry-Definitions: a.yaml')
        csar.writestr('a.yaml', definitions.replace(
            'cp \\"', 'cp ').replace(f'cp {EVIL}:', f'cp{len(EVIL)}:'))
        csar.writestr('a.click', EVIL)
    return packed.getvalue()


class HostileNamesTest(base.PageTest):

    def setUp(self):
        super().setUp()
        vnf = cloud.vnf(
            vnfInstanceName=EVIL, vnfInstanceDescription=EVIL,
            vnfProductName=EVIL, vnfSoftwareVersion=EVIL,
            metadata={
                'clickosProperties': json.dumps({EVIL: EVIL}),
                'clickosState': json.dumps({cloud.VNFC: EVIL}),
                'clickosUpdate': json.dumps({'verdict': 'refused',
                                             'message': EVIL})})
        info = vnf['instantiatedVnfInfo']
        info['scaleStatus'] = [{'aspectId': EVIL, 'scaleLevel': EVIL}]
        info['vnfcResourceInfo'][0]['vduId'] = EVIL
        package = cloud.package(
            vnfProductName=EVIL, vnfProvider=EVIL, vnfSoftwareVersion=EVIL,
            usageState=EVIL)
        self.cloud.answers.update({
            'GET /vnflcm/v1/vnf_instances': [vnf], f'GET {_VNF}': vnf,
            'GET /vnfpkgm/v1/vnf_packages': [package],
            f'GET {_PACKAGE}': package,
            f'GET {_PACKAGE}/package_content': evil_csar(),
            'GET /v1.0/vims': {'vims': [{'id': EVIL, 'name': EVIL}]},
            'GET /vnflcm/v1/vnf_lcm_op_occs': [cloud.operation(
                operation=EVIL, operationState='FAILED', startTime=EVIL,
                operationParams=json.dumps({EVIL: EVIL}),
                error={'detail': EVIL})],
            _GUEST: {'handlers': [
                {'name': EVIL, 'read': True, 'write': True},
                {'name': 'fw.config', 'read': True, 'write': True}]},
            f'{_GUEST}/fw.config': {'name': 'fw.config', 'value': EVIL},
            f'{_GUEST}/config': {'name': 'config', 'value': EVIL}})
        self.cloud.answers.update(test_chains.answers(
            (EVIL, 'b'), name=EVIL))
        for thing in (*api.neutron.port_list.return_value,
                      *api.neutron.network_list_for_tenant.return_value):
            thing._apidict['name'] = EVIL
            thing._apidict['name_or_id'] = EVIL

    def check(self, text):
        self.hides(_LEFT_ALONE.sub('', text), *_RAW)
        self.shows(text, 'alert(1)')

    def test_every_page(self):
        host = types.SimpleNamespace(
            name=EVIL, state=EVIL, status='disabled', running_vms=EVIL,
            memory_used=EVIL, memory_size=EVIL,
            service_details={'host': EVIL, 'disabled_reason': EVIL})
        agent = types.SimpleNamespace(
            host=EVIL, is_alive=True, configuration={
                'load': {'packets_per_s': EVIL, 'dropped_per_s': EVIL}})
        self._setup_user(roles=[{'id': '1', 'name': 'admin'}])
        with mock.patch.object(api.nova, 'hypervisor_list', autospec=True,
                               return_value=[host]), \
                mock.patch.object(api.neutron, 'agent_list', autospec=True,
                                  return_value=[agent]), \
                mock.patch.object(api.nova, 'server_console_output',
                                  autospec=True, return_value=EVIL):
            for name, *args in (
                    ('overview:index',), ('packages:index',),
                    ('packages:detail', cloud.PACKAGE), ('vnfs:index',),
                    ('vnfs:choose',), ('vnfs:launch', cloud.PACKAGE),
                    ('vnfs:update', cloud.VNF), ('vnfs:scale', cloud.VNF),
                    ('chains:index',), ('chains:create',),
                    ('chains:detail', test_chains.CHAIN),
                    ('chains:insert', test_chains.CHAIN),
                    ('vnfs:handler', cloud.VNF, cloud.SERVER, 'fw.config')):
                with self.subTest(name):
                    self.check(self.page(reverse(
                        f'horizon:clickos:{name}', args=args)))
            detail = reverse('horizon:clickos:vnfs:detail',
                             args=(cloud.VNF,))
            for tab in ('state', 'graph', 'counters', 'handlers',
                        'configuration', 'console', 'operations'):
                with self.subTest(tab):
                    self.check(self.page(f'{detail}?tab=vnf__{tab}'))

    def test_every_page_of_a_guest(self):
        server = types.SimpleNamespace(
            id=cloud.SERVER, name=EVIL, status=EVIL, image={'id': 'i'},
            metadata={})
        image = types.SimpleNamespace(id='i', properties={
            'clickos_sha256': '0'})
        event = types.SimpleNamespace(action=EVIL, start_time=EVIL,
                                      message=EVIL, request_id=EVIL)
        for place, name, answer in (
                (api.nova, 'server_list', ([server], False)),
                (api.nova, 'server_get', server),
                (api.nova, 'instance_action_list', [event]),
                (api.nova, 'server_console_output', EVIL),
                (api.glance, 'image_list_detailed', ([image], 0, 0))):
            self.enterContext(mock.patch.object(
                place, name, autospec=True, return_value=answer))
        self.check(self.page(reverse('horizon:clickos:guests:index')))
        detail = reverse('horizon:clickos:guests:detail',
                         args=(cloud.SERVER,))
        for tab in ('graph', 'counters', 'handlers', 'configuration',
                    'events', 'console'):
            with self.subTest(tab):
                self.check(self.page(f'{detail}?tab=guest__{tab}'))
        editor = reverse('horizon:clickos:guests:configuration',
                         args=(cloud.SERVER,))
        self.check(self.page(editor))
        self.cloud.answers[f'PUT /v1/servers/{cloud.SERVER}/configuration'
                           ] = (400, {'error': {'code': 'bad-config',
                                                'message': EVIL}})
        for action in ('check', 'compare', 'replace', 'undo'):
            with self.subTest(action):
                self.check(self.client.post(editor, {
                    'action': action, 'text': EVIL}).content.decode())

    def test_a_guests_error(self):
        path = f'/v1/servers/{cloud.SERVER}/handlers/fw.config'
        self.cloud.answers[f'PUT {path}'] = (400, {'error': {
            'code': 'handler-error', 'message': EVIL}})
        self.check(self.client.post(
            reverse('horizon:clickos:vnfs:handler',
                    args=(cloud.VNF, cloud.SERVER, 'fw.config')),
            {'value': EVIL}).content.decode())

    def test_tackers_words_about_a_file(self):
        self.cloud.answers['POST /vnfpkgm/v1/vnf_packages'] = {
            'id': cloud.PACKAGE}
        self.cloud.answers[f'PUT {_PACKAGE}/package_content'] = (
            400, {'detail': EVIL})
        self.check(self.client.post(
            reverse('horizon:clickos:packages:upload'),
            {'csar': uploadedfile.SimpleUploadedFile(EVIL, b'PK')}
        ).content.decode())

    def test_an_elements_name_in_the_picture(self):
        word = EVIL.replace(' ', '')
        self.cloud.answers[f'{_GUEST}/graph'] = {'name': 'graph', 'value': (
            f'watched_ns 1\nelement {word} {word} 7\n'
            f'connection {word} 0 {word} 0 push 1 1\n')}
        text = self.page(reverse('horizon:clickos:guests:graph',
                                 args=(cloud.SERVER,)))
        self.hides(text, '<script', '<img')
        self.shows(text, 'alert(1)', '<svg')
