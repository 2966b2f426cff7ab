# SPDX-License-Identifier: Apache-2.0
"""The images that the lab uploads for its hosts."""

import dataclasses
import os
import types
from unittest import mock

from clickos_lab import bounds
from clickos_lab.cloud import image
from clickos_lab.config import hosts
from clickos_lab import paths
from clickos_lab.xen import image as guest_image
from clickos_lab.xen import linux_image
from tests.unit import base


@dataclasses.dataclass
class _Glance:
    """The calls of openstacksdk's proxy in use."""

    found: list = dataclasses.field(default_factory=list)

    def images(self, name):
        return [each for each in self.found if each.name == name]

    def delete_image(self, each):
        self.found.remove(each)

    def create_image(self, name, filename, disk_format, container_format,
                     visibility, wait, tags, **properties):
        # Attributes of openstacksdk's images, not among the others.
        own = {key: properties.pop(key, None)
               for key in ('ramdisk_id', 'os_command_line')}
        made = types.SimpleNamespace(
            **own, name=name, status='active', tags=tags,
            properties=properties,
            formats=(disk_format, container_format), id=f'id of {name}')
        self.found.append(made)
        return made


class ImagesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.state = paths.State(self.folder / 'state')
        folder = guest_image.folder(self.state)
        folder.mkdir(parents=True)
        for name in guest_image.OF_PROFILES:
            (folder / name).write_text(name)
            (folder / f'{name}.groups').write_text(f'standard,{name}\n')
        self.glance = _Glance()

    def ensure(self):
        """Upload the images of the Xen host; return {name: image}."""
        image.ensure(self.state, types.SimpleNamespace(image=self.glance),
                     hosts.XEN)
        return {each.name: each for each in self.glance.found}

    def test_a_xen_host_has_an_image_for_each_profile(self):
        found = self.ensure()
        self.assertEqual(['clickos-xen', 'clickos-xen-full',
                          'clickos-xen-ids'], sorted(found))
        for name, tags, groups in (
                ('clickos-xen', [], 'standard,clickos'),
                ('clickos-xen-full', ['clickos-xen'],
                 'standard,clickos-full'),
                ('clickos-xen-ids', ['clickos-xen'],
                 'standard,clickos-ids')):
            self.assertEqual(tags, found[name].tags)
            self.assertEqual(groups,
                             found[name].properties['clickos_groups'])
            self.assertEqual('required', found[name].properties[
                'trait:CUSTOM_CLICKOS_XEN'])

    def test_images_stay_until_their_bytes_groups_or_tags_change(self):
        before = self.ensure()
        self.assertEqual(before, self.ensure())
        before['clickos-xen-full'].tags = []
        groups = guest_image.folder(self.state) / 'clickos.groups'
        groups.write_text('standard\n')
        after = self.ensure()
        self.assertEqual(['clickos-xen'], after['clickos-xen-full'].tags)
        self.assertEqual('standard',
                         after['clickos-xen'].properties['clickos_groups'])
        self.assertEqual(3, len(self.glance.found))

    def test_a_xen_host_has_a_linux_guest_once_it_is_built(self):
        self.assertNotIn('clickos-xen-linux', self.ensure())
        for path in linux_image.files(self.state):
            path.write_text(path.name)
        found = self.ensure()
        kernel = found['clickos-xen-linux']
        ramdisk = found['clickos-xen-linux-ramdisk']
        self.assertEqual(('aki', 'aki'), kernel.formats)
        self.assertEqual(('ari', 'ari'), ramdisk.formats)
        self.assertEqual(ramdisk.id, kernel.ramdisk_id)
        self.assertIn('$PORT0_NET', kernel.os_command_line)
        self.assertEqual('required', kernel.properties[
            'trait:CUSTOM_CLICKOS_XEN'])
        self.assertEqual(found, self.ensure())


class BoundsTest(base.TestCase):

    def test_an_image_is_built_again_for_another_bound(self):
        state = paths.State(self.folder / 'state')
        guest_image.folder(state).mkdir(parents=True)
        file = self.folder / 'bounds.toml'
        built = self.enterContext(mock.patch.object(
            guest_image, '_build', return_value='report'))
        self.enterContext(mock.patch.dict(
            os.environ, {bounds.VARIABLE: str(file)}))
        for bound, count in (2048, 1), (2048, 1), (1, 2):
            file.write_text(f'max_default_image_kib = {bound}\n')
            self.assertEqual('report', guest_image.build(state))
            self.assertEqual(count, built.call_count)
