# SPDX-License-Identifier: Apache-2.0
"""openstack clickos vnf deploy | set, catalog list | show."""

import hashlib
import io
import pathlib
import tempfile
import types
import zipfile

from clickos_client import api
from clickos_client import descriptor_reader
from keystoneauth1 import session as ks_session

from clickos_osc import plugin
from clickos_osc.v1 import catalog as catalog_commands
from clickos_osc.v1 import deploy
from clickos_osc.v1 import vnf
from clickos_osc import waiting
from tests.unit.clickos_osc import base
from tests.unit.clickos_osc import networking
from tests.unit.clickos_osc import test_lifecycle

_REPO = pathlib.Path(__file__).parents[4]
_TEMPLATE = _REPO / 'vnfd-templates/firewall'
_NETWORKS = ('--network', 'left=l', '--network', 'right=r,ip=10.0.2.1')


def firewall():
    """Return the bytes of the catalog's firewall."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w') as csar:
        csar.writestr('TOSCA-Metadata/TOSCA.meta',
                      'TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\n'
                      'Created-By: x\n'
                      'Entry-Definitions: Definitions/firewall.yaml\n')
        for path in sorted(_TEMPLATE.glob('*/*')):
            csar.writestr(str(path.relative_to(_TEMPLATE)),
                          path.read_bytes())
    return packed.getvalue()


#: Networks: id, name, project.
_OF_NEUTRON = (
    ('net-l', 'l', networking.PROJECT), ('net-r', 'r', networking.PROJECT),
    ('trap-l', 'l', 'another'), ('trap-r', 'net-r', 'another'),
    ('public-id', 'public', 'another'), ('net-1', 'twice', 'another'),
    ('net-2', 'twice', 'another'))


class DeployTestCase(test_lifecycle.TackerTestCase):
    """A catalog with the firewall, two networks."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        self.csar = firewall()
        self.put('firewall.csar', self.csar)
        self.conf.set_override('catalog_path', str(self.folder),
                               'clickos_api')
        self.addCleanup(self.conf.clear_override, 'catalog_path',
                        'clickos_api')
        self.server.set_app(base.base.app.create(self.conf))
        self.manager.session = ks_session.Session(base.Auth({
            'clickos': f'http://127.0.0.1:{self.server.server_port}',
            'nfv-orchestration': self.tacker.url}, self.token))
        self.manager.clickos = plugin.make_client(self.manager)
        self.manager.sdk_connection.network.networks = self.networks

    @staticmethod
    def networks(**query):
        """List networks as Neutron does: those of others are shared."""
        return [types.SimpleNamespace(
            id=key, name=name, project_id=project_id)
            for key, name, project_id in _OF_NEUTRON
            if query.get('id') == key or query.get('name') == name]

    def put(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def deploy(self, package, *arguments):
        return self.run_whole(deploy.DeployVnf, package, *arguments,
                              '-f', 'json')

    def assertNothingStays(self):
        self.assertEqual(({}, {}), (self.tacker.packages, self.tacker.vnfs))


class DeployTest(DeployTestCase):

    def test_from_the_catalog(self):
        rules = self.put('rules', b'allow icmp,\ndeny all\n')
        status, shown, log = self.deploy(
            'firewall', '--name', 'edge', *_NETWORKS, '--property',
            f'rules=@{rules}', '--wait')
        self.assertEqual(0, status)
        self.assertIn('"name": "edge"', shown)
        self.assertIn('edge: INSTANTIATE COMPLETED', log)
        body = self.tacker.calls[-1][2]
        self.assertEqual({'clickos_properties': {
            'rules': ['allow icmp', 'deny all']}}, body['additionalParams'])
        self.assertEqual('vim-1', body['vimConnectionInfo'][0]['vimId'])
        left, right = body['extVirtualLinks']
        self.assertEqual(('left', 'net-l'), (left['id'], left['resourceId']))
        self.assertEqual(
            [{'type': 'IPV4', 'fixedAddresses': ['10.0.2.1']}],
            right['extCps'][0]['cpConfig'][0]['cpProtocolData'][0][
                'ipOverEthernet']['ipAddresses'])
        content, = self.tacker.contents.values()
        self.assertNotEqual(descriptor_reader.vnfd_id(self.csar),
                            descriptor_reader.vnfd_id(content))

    def test_a_network_of_another_project_takes_no_name(self):
        self.deploy('firewall', '--network', 'left=public', '--network',
                    'right=net-r')
        self.assertEqual(['public-id', 'net-r'], [
            each['resourceId'] for each
            in self.tacker.calls[-1][2]['extVirtualLinks']])

    def test_the_package_is_onboarded_once(self):
        self.deploy('firewall', '--name', 'a', *_NETWORKS)
        status, _, log = self.deploy('firewall', '--name', 'b', *_NETWORKS)
        self.assertEqual((0, 1), (status, len(self.tacker.packages)))
        with zipfile.ZipFile(self.folder / 'firewall.csar', 'a') as csar:
            csar.writestr('Files/more', 'x')
        self.deploy('firewall', '--name', 'c', *_NETWORKS)
        self.assertEqual(2, len(self.tacker.packages))

    def test_a_file(self):
        path = self.put('mine.csar', self.csar)
        self.assertEqual(0, self.deploy(path, *_NETWORKS)[0])
        body, = self.tacker.packages.values()
        body.update(vnfdId=descriptor_reader.vnfd_id(self.csar), checksum={
            'algorithm': 'sha512',
            'hash': hashlib.sha512(self.csar).hexdigest()})
        self.assertEqual(0, self.deploy(path, '--name', 'b', *_NETWORKS)[0])
        self.assertEqual(1, len(self.tacker.packages))
        body['checksum']['hash'] = 'x'
        self.refused('has the descriptor_id .* and other files',
                     deploy.DeployVnf, path, '--name', 'c', *_NETWORKS)

    def test_a_package_of_tacker(self):
        body = self.tacker.add_package(self.csar, vnfProductName='Mine')
        for number, name in enumerate((body['id'], 'vnfd', 'Mine')):
            self.assertEqual(0, self.deploy(
                name, '--name', str(number), *_NETWORKS)[0])
        self.tacker.add_package(self.csar, vnfProductName='Mine')
        self.refused('several packages have this product; use an ID: ',
                     deploy.DeployVnf, 'Mine', *_NETWORKS)

    def test_what_is_refused_makes_nothing(self):
        for words, *arguments in (
                ('no network for right', '--network', 'left=l'),
                ('each connection point once', '--network', 'up=l'),
                ('network gone: does not exist', '--network', 'left=gone'),
                ('network twice: several have this name', '--network',
                 'left=twice'),
                ('expected an address, got x', '--network', 'left=l,ip=x'),
                (r'--property x.x1b: expected NAME', '--property', 'x\x1b=1'),
                ('--name .*: expected 1 to 255', '--name', 'a' * 256),
                ('--name .*: expected 1 to 255', '--name', 'a\n'),
                ('--vim there: expected one of: here vim-1', '--vim',
                 'there')):
            networks = () if words[0] != '-' else _NETWORKS
            self.refused(words, deploy.DeployVnf, 'firewall', *networks,
                         *arguments)
        self.refused('no package in Tacker and none', deploy.DeployVnf,
                     '\x1bgone', *_NETWORKS)
        self.tacker.add_vnf('firewall')
        self.refused('has this name', deploy.DeployVnf, 'firewall',
                     *_NETWORKS)
        self.assertEqual([], self.tacker.calls)

    def test_a_failure_at_each_step_leaves_nothing(self):
        for end, verb in (('package_content', 'PUT'),
                          ('vnf_instances', 'POST'),
                          ('instantiate', 'POST')):
            self.tacker.refused = {(verb, end): (400, {'detail': 'full'})}
            self.refused(r'full \(HTTP 400\)', deploy.DeployVnf, 'firewall',
                         *_NETWORKS)
            self.assertNothingStays()

    def test_an_instantiation_that_fails_leaves_nothing(self):
        self.tacker.states = ['PROCESSING', 'FAILED_TEMP']
        self.refused('firewall: INSTANTIATE FAILED_TEMP', deploy.DeployVnf,
                     'firewall', *_NETWORKS, '--wait')
        self.assertNothingStays()
        self.assertIn(('POST', 'fail'), self.tacker.verbs())

    def test_what_cannot_be_removed_is_named(self):
        self.tacker.states = ['FAILED_TEMP']
        vnfs = self.tacker.vnfs
        app = self.app_of_cli()
        instance = deploy.DeployVnf(app, None)
        parsed = instance.get_parser('openstack').parse_args(
            ['firewall', *_NETWORKS, '--wait'])
        begin = self.tacker.operate

        def operate(vnf_id, verb, states=None):
            self.tacker.refused['DELETE', vnf_id] = 409, {'detail': 'busy'}
            return begin(vnf_id, verb, states)
        self.tacker.operate = operate
        with self.assertRaisesRegex(Exception, 'FAILED_TEMP'):
            instance.run(parsed)
        vnf_id, = vnfs
        self.assertIn(f'VNF {vnf_id} stays: busy (HTTP 409); "openstack'
                      f' clickos vnf delete --force {vnf_id}"',
                      app.stderr.getvalue())

    def test_an_error_while_it_waits_says_what_goes_on(self):
        self.tacker.refused['GET', 'vnf_lcm_op_occs'] = 503, {'detail': 'x'}
        self.refused(r'x \(HTTP 503\); in Tacker goes on: firewall: INST',
                     deploy.DeployVnf, 'firewall', *_NETWORKS, '--wait')
        self.assertEqual(1, len(self.tacker.vnfs))

    def test_ctrl_c_keeps_what_goes_on(self):
        self.tacker.states = ['PROCESSING']
        waiting.pause.side_effect = (None, None, KeyboardInterrupt)
        status, _, log = self.deploy('firewall', *_NETWORKS, '--wait')
        self.assertEqual(waiting.INTERRUPTED, status)
        self.assertIn('in Tacker goes on: firewall: INSTANTIATE', log)
        self.assertEqual(1, len(self.tacker.vnfs))


class SetTest(DeployTestCase):

    def setUp(self):
        super().setUp()
        self.tacker.add_package(self.csar)
        self.body = self.tacker.add_vnf('edge')

    def set(self, *arguments):
        return self.run_whole(vnf.SetVnf, 'edge', *arguments, '-f', 'json')

    def test_properties(self):
        status, _, log = self.set('--property', 'rules=allow icmp, deny all',
                                  '--description', 'x', '--wait')
        self.assertEqual(0, status)
        self.assertEqual({'vnfInstanceDescription': 'x', 'metadata': {
            'clickos_properties': {'rules': ['allow icmp', 'deny all']}}},
            self.tacker.calls[0][2])
        self.assertIn('MODIFY_INFO COMPLETED', log)

    def test_a_refusal_fails(self):
        self.body['metadata']['clickosUpdate'] = (
            '{"verdict": "refused", "message": "bad\\u001b rule"}')
        self.refused(r'the update is refused: bad\\x1b rule', vnf.SetVnf,
                     'edge', '--property', 'rules=x', '--wait')

    def test_a_network(self):
        self.assertEqual(0, self.set('--network', 'right=r', '--wait')[0])
        (_, path, body), = self.tacker.calls
        self.assertTrue(path.endswith('/change_ext_conn'), path)
        self.assertEqual(['right'], [each['id'] for each
                                     in body['extVirtualLinks']])

    def test_a_package(self):
        path = self.put('other.csar', self.csar)
        self.assertEqual(0, self.set('--package', path, '--wait')[0])
        self.assertEqual('vnfd', self.tacker.calls[-1][2]['vnfdId'])

    def test_a_refused_change_leaves_no_package(self):
        self.tacker.refused['PATCH', self.body['id']] = (
            409, {'detail': 'no'})
        path = self.put('other.csar', self.csar)
        self.refused(r'no \(HTTP 409\)', vnf.SetVnf, 'edge', '--package',
                     path)
        self.assertEqual(1, len(self.tacker.packages))

    def test_nothing(self):
        self.refused('nothing to change', vnf.SetVnf, 'edge')
        self.assertEqual([], self.tacker.calls)


class CatalogTest(DeployTestCase):

    def test_list(self):
        self.put('broken.csar', b'PK')
        status, shown, _ = self.run_whole(catalog_commands.ListCatalog,
                                          '-f', 'value')
        first, second = shown.splitlines()
        self.assertIn('not a zip file', first)
        self.assertTrue(second.startswith('firewall Firewall'), second)

    def test_show(self):
        _, shown, _ = self.run_whole(catalog_commands.ShowCatalog,
                                     'firewall', '-f', 'yaml')
        for word in ('- left', '- right', 'filter_rules', 'rules'):
            self.assertIn(word, shown)
        for name in ('gone', '../firewall', 'a' * 300, ''):
            self.refused('no such package|HTTP', catalog_commands.ShowCatalog,
                         name)

    def test_without_a_catalog(self):
        self.conf.set_override('catalog_path', None, 'clickos_api')
        self.server.set_app(base.base.app.create(self.conf))
        self.assertEqual([], self.manager.clickos.list_catalog())
        with self.assertRaisesRegex(api.ClickOSError, 'firewall: no such'):
            self.manager.clickos.catalog_package('firewall')
