# SPDX-License-Identifier: Apache-2.0
"""The pages of VNF packages."""

from django.core.files import uploadedfile
from django.urls import reverse

from clickos_dashboard.packages import forms
from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud

INDEX = reverse('horizon:clickos:packages:index')
UPLOAD = reverse('horizon:clickos:packages:upload')
DETAIL = reverse('horizon:clickos:packages:detail', args=(cloud.PACKAGE,))
_PACKAGES = '/vnfpkgm/v1/vnf_packages'
_PACKAGE = f'{_PACKAGES}/{cloud.PACKAGE}'
_CONTENT = f'{_PACKAGE}/package_content'


class ListTest(base.PageTest):

    def test_a_package_is_listed_with_its_actions(self):
        self.shows(self.page(INDEX), 'Firewall', 'ONBOARDED', 'Launch VNF',
                   'Delete package')

    def test_a_package_that_is_not_ready_cannot_be_launched(self):
        self.cloud.answers[f'GET {_PACKAGES}'] = [
            cloud.package(onboardingState='CREATED')]
        self.hides(self.page(INDEX), 'Launch VNF')

    def test_deleting_disables_first(self):
        self.client.post(INDEX, {
            'action': f'packages__delete__{cloud.PACKAGE}'})
        self.assertEqual(['PATCH', 'DELETE'],
                         [change[0] for change in self.cloud.changes])


class DetailTest(base.PageTest):

    def test_the_descriptor_is_shown(self):
        self.shows(self.page(DETAIL), 'left', 'right', 'filter_rules',
                   'IPFilter(deny all)', '8 MiB')

    def test_a_package_that_is_no_csar_is_told(self):
        for content in (b'', b'PK', b'\0' * 100):
            self.cloud.answers[f'GET {_CONTENT}'] = content
            self.shows(self.page(DETAIL), 'The descriptor cannot be shown')


class UploadTest(base.PageTest):

    def setUp(self):
        super().setUp()
        self.cloud.answers[f'POST {_PACKAGES}'] = {'id': cloud.PACKAGE}

    def upload(self, content=b'PK'):
        return self.client.post(UPLOAD, {
            'csar': uploadedfile.SimpleUploadedFile('a.csar', content)})

    def test_the_csar_reaches_tacker_as_it_is(self):
        self.assertRedirectsNoFollow(self.upload(b'PK\0\xff'), INDEX)
        self.assertIn(('PUT', _CONTENT, b'PK\0\xff'), self.cloud.changes)

    def test_a_refusal_shows_file_and_line_and_leaves_no_package(self):
        reason = 'Definitions/a.yaml:7: an alias (*x); write the value out'
        self.cloud.answers[f'PUT {_CONTENT}'] = (400, {'detail': reason})
        answer = self.upload()
        self.assertEqual([reason],
                         answer.context['form'].non_field_errors())
        self.assertEqual(('DELETE', _PACKAGE, None), self.cloud.changes[-1])

    def test_a_package_that_tacker_drops_is_told(self):
        self.cloud.answers[f'GET {_PACKAGE}'] = cloud.package(
            onboardingState='CREATED', operationalState='DISABLED')
        self.shows(self.upload().content.decode(), 'Tacker refuses')
        self.assertEqual(('DELETE', _PACKAGE, None), self.cloud.changes[-1])

    def test_a_large_file_is_not_sent(self):
        answer = self.upload(b'a' * (forms.MAX_BYTES + 1))
        self.assertEqual([], self.cloud.changes)
        self.shows(answer.content.decode(), '4194305 bytes, the limit is')
