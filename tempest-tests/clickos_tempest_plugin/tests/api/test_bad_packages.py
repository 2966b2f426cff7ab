# SPDX-License-Identifier: Apache-2.0
"""Bad packages and properties, and the errors that refuse them."""

import io

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.tests import base

CONF = config.CONF


def _line_of(words):
    """Return the number a line of the original configuration has."""
    found = []

    def look(text):
        found.extend(number for number, line
                     in enumerate(text.split('\n'), 1) if words in line)
        return text + '\n'
    csar.firewall(click=look)
    return found[0]


def _add(line):
    """Return a change that puts a line at the end of a configuration."""
    return lambda text: text + line + '\n'


class BadPackageTest(base.ClickOSTest):
    """Instantiation fails with a reason the tenant can read.

    The reason is that of the operation occurrence, and nothing is left.
    """

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.good_vnfd_id = cls.tenant.onboard(csar.firewall(),
                                              cls.addClassResourceCleanup)

    def instantiate(self, rules=None, **changes):
        """Return what the instantiation of a package said.

        :param changes: of the package; the good one without
        """
        vnfd_id = self.good_vnfd_id
        if changes:
            vnfd_id = self.tenant.onboard(csar.firewall(**changes),
                                          self.addCleanup)
        vnf_id = self.tenant.create_vnf(vnfd_id, self.addCleanup)
        done = self.tenant.instantiate(vnf_id, rules)
        self.assertEqual('FAILED_TEMP', done['operationState'])
        self.assertNothingLeft(vnf_id)
        return done['error']['detail']

    @decorators.attr(type='slow')
    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b03')
    def test_forbidden_element_todump(self):
        detail = self.instantiate(click=_add('Idle -> ToDump(/etc/passwd);'))
        self.assertRegex(detail, r'firewall\.click:\d+:\d+: .*ToDump')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b05')
    def test_handler_of_an_unknown_element(self):
        detail = self.instantiate(vnfd=lambda text: text.replace(
            'handler: fw.config', 'handler: nobody.config'))
        self.assertIn('nobody', detail)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b06')
    def test_unknown_handler(self):
        detail = self.instantiate(vnfd=lambda text: text.replace(
            'handler: fw.config', 'handler: fw.nothing'))
        self.assertIn('fw.nothing', detail)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b07')
    def test_value_the_handler_rejects(self):
        """Every word is one of IPFilter's, the rule is not."""
        detail = self.instantiate(rules=['allow src'])
        self.assertIn('fw.config', detail)

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b08')
    def test_property_outside_its_constraint(self):
        caught = str(self.assertRaises(exceptions.BadRequest,
                                       self.instantiate, rules=[]))
        self.assertIn('rules', caught)
        self.assertIn('0 rules, 1 to 10000', caught)

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b09')
    def test_property_that_tries_to_inject(self):
        caught = str(self.assertRaises(
            exceptions.BadRequest, self.instantiate,
            rules=['allow all); Idle -> ToDump(x']))
        self.assertIn('rule 0', caught)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b0b')
    def test_tenants_own_image(self):
        """A process host never runs bytes from Glance."""
        self.assertIn('is not the ClickOS engine',
                      self.instantiate_own_image('PROCESS'))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b0f')
    def test_tenants_own_image_for_xen(self):
        """A Xen host runs them, if they are a guest's."""
        if not CONF.clickos.xen_host_command:
            raise self.skipException('[clickos] xen_host_command is not set')
        self.assertIn('it is no ELF file', self.instantiate_own_image('XEN'))

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b12')
    def test_class_that_no_image_has(self):
        """The request is refused: nothing begins that would fail."""
        name = self.own_image('XEN', clickos_groups='device,standard')
        caught = str(self.assertRaises(
            exceptions.Conflict, self.instantiate,
            vnfd=lambda text: csar.with_image(text, name)))
        self.assertIn(f'image {name}: ', caught)
        self.assertIn('ip (class ', caught)
        self.assertIn('ask the operator', caught)

    def own_image(self, kind, **properties):
        """Make an image of the tenant; return its name.

        :param kind: of the hosts the image asks for
        """
        name = data_utils.rand_name('mine')
        images = self.os_primary.image_client_v2
        image = images.create_image(
            name=name, disk_format='raw', container_format='bare',
            visibility='private',
            **{f'trait:CUSTOM_CLICKOS_{kind}': 'required'}, **properties)
        self.addCleanup(images.delete_image, image['id'])
        images.store_image_file(image['id'],
                                io.BytesIO(b'#!/bin/sh\nexec id\n'))
        return name

    def instantiate_own_image(self, kind):
        """Instantiate with a tenant's image; return why it is refused."""
        name = self.own_image(kind)
        return self.instantiate(
            vnfd=lambda text: csar.with_image(text, name))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b0c')
    def test_the_good_package_still_works_after_all_that(self):
        vnf_id = self.tenant.create_vnf(self.good_vnfd_id, self.addCleanup)
        tenant.completed(self.tenant.instantiate(vnf_id, ['deny all']))
        self.assertEqual('deny all', self.tenant.clickos.read_handler(
            vnf_id, 'fw.config', 'vnfs').strip())
        self.tenant.terminate(vnf_id)
        self.assertNothingLeft(vnf_id)


class BadUploadTest(base.ClickOSTest):
    """Packages that do not come into service."""

    def setUp(self):
        super().setUp()
        self.package_id = self.tenant.tacker.create_package()['id']
        self.addCleanup(self.tenant.tacker.delete_package, self.package_id)

    def refusal(self, content):
        """Return why the upload is refused; Tacker keeps no part."""
        caught = self.assertRaises(
            exceptions.BadRequest, self.tenant.tacker.upload_package,
            self.package_id, content)
        shown = self.tenant.tacker.show_package(self.package_id)
        self.assertEqual('CREATED', shown['onboardingState'])
        return str(caught)

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b0a')
    def test_missing_artifact(self):
        self.assertRegex(
            self.refusal(csar.firewall(vnfd=lambda text: text.replace(
                '../Files/firewall.click', '../Files/absent.click'))),
            r'firewall\.yaml:\d+: .*artifact Files/absent.click is missing')

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b01')
    def test_configuration_that_does_not_parse(self):
        line = _line_of('fw -> passed')
        reason = self.refusal(csar.firewall(click=lambda text: text.replace(
            'fw -> passed', 'fw -> -> passed')))
        self.assertRegex(reason, rf'firewall\.click:{line}:\d+: ')

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b02')
    def test_unknown_element(self):
        reason = self.refusal(csar.firewall(
            click=_add('Idle -> NoSuchElement -> Discard;')))
        self.assertRegex(reason, r'firewall\.click:\d+:\d+: .*NoSuchElement')

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b04')
    def test_forbidden_element_kerneltun(self):
        reason = self.refusal(csar.firewall(
            click=_add('KernelTun(1.0.0.1/8) -> Discard;')))
        self.assertRegex(reason, r'firewall\.click:\d+:\d+: .*KernelTun')

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b13')
    def test_group_that_the_package_does_not_name(self):
        reason = self.refusal(csar.firewall(
            vnfd=lambda text: csar.with_groups(text, '{device: ToDevice}')))
        self.assertIn('does not name the groups of elements ', reason)
        self.assertIn('ip (class ', reason)

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b0d')
    def test_file_that_the_manifest_names_is_missing(self):
        self.assertIn(csar.CLICK,
                      self.refusal(csar.firewall(without=[csar.CLICK])))

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b10')
    def test_all_faults_at_once(self):
        reason = self.refusal(csar.firewall(vnfd=lambda text: text.replace(
            'virtual_mem_size: 8 MiB', 'virtual_mem_size: eight').replace(
            'handler: fw.config', 'handler: 7')))
        self.assertRegex(reason, r"firewall\.yaml:\d+: VDU1: .*'eight'")
        self.assertRegex(reason, r'firewall\.yaml:\d+: .*handler 7 is not')

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b11')
    def test_property_that_is_not_followed(self):
        self.assertRegex(
            self.refusal(csar.firewall(vnfd=lambda text: text.replace(
                'flavour_description:', 'flavour_desc:'))),
            r'firewall\.yaml:\d+: .*flavour_desc is not supported')

    @decorators.idempotent_id('9c1b2e7e-5a39-4e4c-8a7e-0f3f3b8f8b0e')
    def test_not_a_package(self):
        self.assertIn('not a zip archive',
                      self.refusal(b'this is no zip file'))
