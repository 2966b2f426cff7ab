# SPDX-License-Identifier: Apache-2.0
"""The pages of VNF packages."""

import io
import pathlib
import re
import tempfile
import zipfile

from django.core.files import uploadedfile
from django import test
from django.urls import reverse

from clickos_dashboard import exceptions
from clickos_dashboard.packages import catalog
from clickos_dashboard.packages import onboarding
from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud

INDEX = reverse('horizon:clickos:packages:index')
UPLOAD = reverse('horizon:clickos:packages:upload')
CATALOG = reverse('horizon:clickos:packages:catalog')
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

    def test_packages_beyond_a_page_of_tacker_are_listed(self):
        self.cloud.answers[f'GET {_PACKAGES}'] = [
            cloud.package(), cloud.package(id=cloud.VNF,
                                           vnfProductName='Second')]
        self.shows(self.page(INDEX), 'Firewall', 'Second')

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
        answer = self.upload(b'a' * (onboarding.MAX_BYTES + 1))
        self.assertEqual([], self.cloud.changes)
        self.shows(answer.content.decode(), '4194305 bytes, the limit is')


class CatalogTest(base.PageTest):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        self.enterContext(test.override_settings(
            CLICKOS_CATALOG=str(self.folder)))
        self.cloud.answers[f'POST {_PACKAGES}'] = {'id': cloud.PACKAGE}
        for name in ('firewall', 'nat'):
            self.put(name, cloud.csar(name))

    def put(self, name, content):
        (self.folder / f'{name}.csar').write_bytes(content)

    def publish(self, name):
        """Press the button; return the page that follows."""
        answer = self.client.post(
            CATALOG, {'action': f'catalog__publish__{name}'}, follow=True)
        return answer.content.decode()

    def sent(self):
        """Return the packages that reached Tacker."""
        return [body for method, path, body in self.cloud.changes
                if (method, path) == ('PUT', _CONTENT)]

    def test_the_catalog_is_offered_if_there_is_one(self):
        self.shows(self.page(INDEX), CATALOG)
        with test.override_settings(CLICKOS_CATALOG=None):
            self.hides(self.page(INDEX), CATALOG)
            self.shows(self.page(CATALOG), 'no package')

    def test_what_the_project_has_is_not_published_again(self):
        page = self.page(CATALOG)
        self.shows(page, 'Firewall', 'Routed firewall', 'NAT',
                   'catalog__publish__nat')
        self.hides(page, 'catalog__publish__firewall')

    def test_one_click_publishes_under_an_id_of_its_own(self):
        self.publish('nat')
        self.publish('nat')
        first, second = self.sent()
        ids = {_vnfd_id(csar) for csar in (first, second, cloud.csar('nat'))}
        self.assertEqual(3, len(ids))
        self.assertEqual(_others(cloud.csar('nat')), _others(first))

    def test_a_refusal_is_told_and_leaves_no_package(self):
        self.cloud.answers[f'PUT {_CONTENT}'] = (400, {'detail': 'no room'})
        self.shows(self.publish('nat'), 'no room')
        self.assertEqual(('DELETE', _PACKAGE, None), self.cloud.changes[-1])

    def test_only_packages_of_the_folder_are_published(self):
        outside = self.folder.parent / 'outside.csar'
        for name in ('gone', f'../{outside.stem}', '..', ''):
            self.publish(name)
        self.assertEqual([], self.cloud.changes)
        with self.assertRaisesRegex(exceptions.DescriptorError, 'gone: no'):
            catalog.content('gone')

    def test_a_damaged_package_is_listed_with_the_reason(self):
        self.put('broken', b'PK')
        self.put('large', bytes(onboarding.MAX_BYTES + 1))
        page = self.page(CATALOG)
        self.shows(page, 'broken', 'not a zip file', 'more than 4194304')
        self.hides(page, 'publish__broken', 'publish__large')

    def test_a_changed_file_is_read_again(self):
        self.page(CATALOG)
        self.put('nat', b'PK')
        self.hides(self.page(CATALOG), 'publish__nat')


def _vnfd_id(csar):
    with zipfile.ZipFile(io.BytesIO(csar)) as archive:
        text = archive.read('Definitions/nat.yaml').decode()
    return re.search(r'descriptor_id: (\S+)', text)[1]


def _others(csar):
    """Return all files but the one with the id."""
    with zipfile.ZipFile(io.BytesIO(csar)) as archive:
        return {name: archive.read(name) for name in archive.namelist()
                if name != 'Definitions/nat.yaml'}
