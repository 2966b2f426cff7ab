# SPDX-License-Identifier: Apache-2.0
"""A cloud whose every text that a tenant or guest can set is hostile."""

import io
import json
import pathlib
import tempfile
import types
from unittest import mock
import zipfile

from django.core.cache import cache
from django.test import override_settings
from django.urls import reverse
from openstack_dashboard import api

from clickos_dashboard.guests import tabs as guest_tabs
from clickos_dashboard.vnfs import tabs as vnf_tabs
from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import test_chains

#: Shows where the text stands.
MARK = 'evil-mark'
#: Sets a title if a browser runs it, by markup or by Angular.
_RUN = 'document.title=/ran/.source'
#: Each part alone would break out of its place on a page.
EVIL = (
    f'"\'><script>{_RUN}</script><img src=x onerror={_RUN}>'
    f'<svg/onload={_RUN}></textarea></pre></title></script>'
    f'<p ng-init="$on.constructor(&#39;{_RUN}&#39;)()">'
    f"';{_RUN};// `${{{_RUN}}} javascript:{_RUN}"
    f"{{$ '{MARK}'; $on.constructor('{_RUN}')() $}}"
    f"{{{{ '{MARK}'; $on.constructor('{_RUN}')() }}}}")
_GUEST = f'GET /v1/servers/{cloud.SERVER}/handlers'
_VNF = f'/vnflcm/v1/vnf_instances/{cloud.VNF}'
_PACKAGE = f'/vnfpkgm/v1/vnf_packages/{cloud.PACKAGE}'
#: An element of the graph has a name without spaces.
_WORD = EVIL.replace(' ', '')


def addresses():
    """Return {name: address} of every page."""
    named = {
        'overview:index': (), 'topology:index': (),
        'packages:index': (), 'packages:upload': (),
        'packages:catalog': (), 'packages:detail': (cloud.PACKAGE,),
        'vnfs:index': (), 'vnfs:choose': (), 'vnfs:launch': (cloud.PACKAGE,),
        'vnfs:detail': (cloud.VNF,), 'vnfs:update': (cloud.VNF,),
        'vnfs:scale': (cloud.VNF,),
        'vnfs:handler': (cloud.VNF, cloud.SERVER, 'fw.config'),
        'guests:index': (), 'guests:detail': (cloud.SERVER,),
        'guests:handler': (cloud.SERVER, 'fw.config'),
        'guests:configuration': (cloud.SERVER,), 'chains:index': (),
        'chains:create': (), 'chains:detail': (test_chains.CHAIN,),
        'chains:insert': (test_chains.CHAIN,),
        'chains:rule': (test_chains.CHAIN, test_chains.RULE)}
    return {name: reverse(f'horizon:clickos:{name}', args=arguments)
            for name, arguments in named.items()}


def tabs():
    """Return the addresses of all tabs, the tab in the query."""
    places = addresses()
    return [f'{places[name]}?tab={group.slug}__{tab.slug}'
            for name, group in (('vnfs:detail', vnf_tabs.VnfTabs),
                                ('guests:detail', guest_tabs.GuestTabs))
            for tab in group.tabs]


def csar():
    """Return a package whose every name is hostile."""
    evil = json.dumps(EVIL)
    definitions = f'''
description: {evil}
topology_template:
  substitution_mappings: {{properties: {{flavour_id: {evil}}}}}
  node_templates:
    vnf:
      type: evil
      properties: {{descriptor_id: evil, product_name: {evil},
                    provider: {evil}, software_version: {evil}}}
    {evil}:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {{description: {evil}}}
      artifacts: {{click: {{file: a.click}}}}
      capabilities:
        virtual_compute:
          properties: {{virtual_memory: {{virtual_mem_size: {evil}}}}}
    "cp {evil[1:]}:
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
            l: {{type: list, items: {{type: string}}, default: [{evil}]}}
'''
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w') as archive:
        archive.writestr('TOSCA-Metadata/TOSCA.meta',
                         'Entry-Definitions: a.yaml')
        archive.writestr('a.yaml', definitions)
        archive.writestr('a.click', f'// {EVIL}\nidle :: Idle;')
    return packed.getvalue()


class HostileTest(base.PageTest):
    """Pages on such a cloud, for a tenant who is an administrator."""

    def setUp(self):
        super().setUp()
        cache.clear()
        self._setup_user(roles=[{'id': '1', 'name': 'admin'}])
        self.cloud.answers.update({**_tacker(), **_clickos(),
                                   **test_chains.answers((EVIL, 'b'),
                                                         name=EVIL)})
        test_chains.with_rules(self.cloud.answers, {
            'id': test_chains.RULE, 'ethertype': EVIL, 'protocol': EVIL,
            'source_ip_prefix': EVIL, 'destination_ip_prefix': EVIL,
            'logical_source_port': EVIL})
        for thing in (*api.neutron.port_list.return_value,
                      *api.neutron.network_list_for_tenant.return_value):
            thing._apidict['name'] = EVIL
            thing._apidict['name_or_id'] = EVIL
        for port in api.neutron.port_list.return_value:
            port._apidict.update({
                'description': f'clickos-vnf:{cloud.VNF}',
                'device_id': cloud.SERVER, 'project_id': self.tenant.id,
                'mac_address': EVIL, 'fixed_ips': [{'ip_address': EVIL}]})
        for place, name, answer in _horizon():
            self.enterContext(mock.patch.object(
                place, name, autospec=True, return_value=answer))
        folder = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        (folder / 'a.csar').write_bytes(csar())
        checker = folder / 'click-check'
        checker.write_text(f'#!/bin/sh\ncat >&2 <<"END"\n-:1:1: {EVIL}\nEND\n'
                           'exit 1\n')
        checker.chmod(0o755)
        self.enterContext(override_settings(
            CLICKOS_CATALOG=str(folder), CLICKOS_CHECK_PROGRAM=str(checker)))


def _tacker():
    vnf = cloud.vnf(
        vnfInstanceName=EVIL, vnfInstanceDescription=EVIL,
        vnfProductName=EVIL, vnfSoftwareVersion=EVIL, metadata={
            'clickosProperties': json.dumps({EVIL: EVIL}),
            'clickosState': json.dumps({cloud.VNFC: EVIL}),
            'clickosUpdate': json.dumps({'verdict': 'refused',
                                         'message': EVIL})})
    info = vnf['instantiatedVnfInfo']
    info['scaleStatus'] = [{'aspectId': EVIL, 'scaleLevel': EVIL}]
    info['vnfcResourceInfo'][0]['vduId'] = EVIL
    package = cloud.package(vnfProductName=EVIL, vnfProvider=EVIL,
                            vnfSoftwareVersion=EVIL, usageState=EVIL)
    return {
        'GET /vnflcm/v1/vnf_instances': [vnf], f'GET {_VNF}': vnf,
        'GET /vnfpkgm/v1/vnf_packages': [package],
        f'GET {_PACKAGE}': package,
        f'GET {_PACKAGE}/package_content': csar(),
        'GET /v1.0/vims': {'vims': [{'id': EVIL, 'name': EVIL}]},
        'GET /vnflcm/v1/vnf_lcm_op_occs': [cloud.operation(
            operation=EVIL, operationState='FAILED', startTime=EVIL,
            operationParams=json.dumps({EVIL: EVIL}),
            error={'detail': EVIL})],
        'POST /vnfpkgm/v1/vnf_packages': {'id': cloud.PACKAGE},
        f'PUT {_PACKAGE}/package_content': (400, {'detail': EVIL})}


def _clickos():
    server = f'/v1/servers/{cloud.SERVER}'
    return {
        _GUEST: {'handlers': [
            {'name': EVIL, 'read': True, 'write': True},
            {'name': 'fw.config', 'read': True, 'write': True},
            {'name': 'fw.log', 'read': True, 'write': False}]},
        f'{_GUEST}/fw.log': {'name': 'fw.log', 'value':
                             f'1 1 6 ::1 1 ::2 2 {EVIL[-300:]}\n'},
        f'{_GUEST}/fw.config': {'name': 'fw.config', 'value': EVIL},
        f'{_GUEST}/config': {'name': 'config',
                             'value': f'// {EVIL}\nidle :: Idle;'},
        f'{_GUEST}/graph': {'name': 'graph', 'value': (
            f'watched_ns 1\nelement {_WORD} {_WORD} 7\n'
            f'connection {_WORD} 0 {_WORD} 0 push 1 1\n')},
        f'GET {server}/ports': {'ports': [{
            'id': EVIL, 'mac_address': EVIL, 'link_up': True,
            'counters': {'rx_packets': 1, f'dropped_{EVIL}': 1}}]},
        f'PUT {server}/handlers/fw.config': (400, {'error': {
            'code': 'handler-error', 'message': EVIL}}),
        f'PUT {server}/configuration': (400, {'error': {
            'code': 'bad-config', 'message': EVIL}})}


def _horizon():
    """Return (module, function, answer) of what Horizon itself asks."""
    server = types.SimpleNamespace(id=cloud.SERVER, name=EVIL, status=EVIL,
                                   image={'id': 'i'}, metadata={})
    image = types.SimpleNamespace(id='i', properties={'clickos_sha256': '0'})
    event = types.SimpleNamespace(action=EVIL, start_time=EVIL, message=EVIL,
                                  request_id=EVIL)
    host = types.SimpleNamespace(
        name=EVIL, state=EVIL, status='disabled', running_vms=EVIL,
        memory_used=EVIL, memory_size=EVIL,
        service_details={'host': EVIL, 'disabled_reason': EVIL})
    agent = types.SimpleNamespace(
        host=EVIL, is_alive=True, configuration={
            'load': {'packets_per_s': EVIL, 'dropped_per_s': EVIL}})
    return ((api.nova, 'server_list', ([server], False)),
            (api.nova, 'server_get', server),
            (api.nova, 'instance_action_list', [event]),
            (api.nova, 'server_console_output', EVIL),
            (api.nova, 'hypervisor_list', [host]),
            (api.neutron, 'agent_list', [agent]),
            (api.glance, 'image_list_detailed', ([image], 0, 0)))
