# SPDX-License-Identifier: Apache-2.0
"""A guest gets an image that has the elements of its configuration."""

import dataclasses
import itertools
import threading
from unittest import mock

from clickos_client import checker

from tacker_clickos import elements
from tacker_clickos import exception
from tacker_clickos import images
from tacker_clickos import own
from tacker_clickos.package import fair_queue
from tacker_clickos import servers
from tacker_clickos.vnfd import loader
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_bounded_review

_CORE = 'device,standard'
_OWN = elements.Allowance('project', seconds=1000)
_NEEDED = {'standard': 'Queue', 'wireguard': 'WireGuard'}


class ChoiceTest(base.CloudTestCase):

    def setUp(self):
        super().setUp()
        self.cloud.images[:] = [base.image('core', 'xen', _CORE)]

    def add(self, image_id, groups, **values):
        self.cloud.images.append(base.image(
            image_id, image_id, groups, **{'tags': ['xen'], **values}))

    def choose(self, needed=_NEEDED):
        return images.choose(self.cloud, 'xen', needed)

    def test_the_named_image_if_it_has_all(self):
        self.add('full', 'device,standard,wireguard')
        self.assertEqual('core', self.choose({'standard': 'Queue'}))
        self.assertEqual('core', self.choose({}))
        self.assertEqual('core', self.choose(None))

    def test_else_the_smallest_with_the_tag(self):
        self.add('full', 'device,regex,standard,wireguard', size=3)
        self.add('vpn', 'device, standard, wireguard', size=2)
        self.add('ids', 'device,regex,standard', size=1)
        self.assertEqual('vpn', self.choose())
        self.assertEqual('full', self.choose({**_NEEDED, 'regex': 'X'}))

    def test_an_image_without_the_property_passes_for_one_with_all(self):
        self.cloud.images[:] = [base.image('old', 'xen')]
        self.assertEqual('old', self.choose())

    def test_images_of_others_do_not_count(self):
        self.add('theirs', 'standard,wireguard', visibility='shared')
        self.add('queued', 'standard,wireguard', status='queued')
        self.add('of another family', 'standard,wireguard', tags=['xen2'])
        self.assertRaises(exception.NoImage, self.choose)
        self.add('own', 'standard,wireguard', visibility='private',
                 owner=base.PROJECT)
        self.assertEqual('own', self.choose())

    def test_an_image_that_a_member_published_does_not_count(self):
        member = {'owner': 'member', 'created_at': '2026-02-01T00:00:00Z'}
        # Glance takes an id from a request, so it may be the first one.
        self.cloud.images.insert(0, base.image('0', 'xen', **member))
        self.cloud.images.insert(0, base.image(
            '00', 'their name', tags=['xen'], **member))
        self.assertEqual('core', self.choose({'standard': 'Queue'}))
        self.assertRaises(exception.NoImage, self.choose)
        self.add('full', 'device,standard,wireguard', size=3)
        self.assertEqual('full', self.choose())

    def test_many_images_of_the_project_cost_little(self):
        mine = {'visibility': 'private', 'owner': base.PROJECT}
        taken = []

        def endless(visibility=None, owner=None, **_query):
            """Answer as Glance does, the newest first and page by page."""
            while owner:
                taken.append(base.image(f'm{len(taken)}', 'xen', 'device',
                                        tags=['xen'], **mine))
                yield taken[-1]
            yield base.image('core', 'xen', _CORE, tags=['xen'])
        self.cloud.image.images.side_effect = endless
        self.assertEqual('core', self.choose({'standard': 'Queue'}))
        self.assertEqual(own.MOST_IMAGES, len(taken))
        self.assertRaises(exception.NoImage, self.choose)
        self.assertEqual(3 * own.MOST_IMAGES, len(taken))

    def test_an_image_without_data_does_not_count(self):
        self.cloud.images.insert(0, base.image('a next one', 'xen', _CORE,
                                               status='queued'))
        self.assertEqual('core', self.choose({'standard': 'Queue'}))
        del self.cloud.images[1]
        with self.assertRaisesRegex(exception.ResourceNotUsable, 'active'):
            self.choose()

    def test_a_class_of_no_image_is_named_with_group_and_cure(self):
        self.add('ids', 'device,regex')
        with self.assertRaises(exception.NoImage) as refused:
            self.choose({**_NEEDED, 'ids': 'StringMatcher'})
        self.assertEqual(409, refused.exception.http_status)
        self.assertEqual(
            'image xen: no image of this name or tag has all groups of '
            'elements that the configuration needs; missing: ids (class '
            'StringMatcher), wireguard (class WireGuard); ask the operator '
            'for the image of the profile full or ids '
            '(docs/operator/images.md), or name another image in '
            'sw_image_data', str(refused.exception))

    def test_the_image_that_lacks_least_decides_the_words(self):
        self.add('vpn', 'device,standard,wireguard')
        with self.assertRaisesRegex(exception.NoImage,
                                    'missing: x [(]class X[)];'):
            self.choose({**_NEEDED, 'x': 'X'})


class ServerTest(base.CloudTestCase):

    def setUp(self):
        super().setUp()
        base.use_checker(self)
        self.cloud.images[:] = [
            base.image('core', 'clickos', _CORE),
            base.image('full', 'full', _CORE + ',wireguard',
                       tags=['clickos'])]

    def vdu(self, more=''):
        """Return the firewall's VDU with more in its configuration."""
        path = self.package / 'Files/firewall.click'
        path.write_text(path.read_text() + more)
        return loader.load(self.package, 'simple').vdus['VDU1']

    def image_of(self, vdu):
        server = servers.create(
            self.cloud, {servers.VNF_KEY: base.VNF_ID}, 'VDU1-0', vdu, (),
            'user data')
        return server, server.image.id

    def test_a_server_has_the_image_of_its_elements(self):
        server, image = self.image_of(self.vdu())
        self.assertEqual('core', image)
        vdu = self.vdu('Idle -> WireGuard -> Discard;')
        self.assertFalse(servers.is_as_wanted(self.cloud, server, vdu))
        server, image = self.image_of(vdu)
        self.assertEqual('full', image)
        self.assertTrue(servers.is_as_wanted(self.cloud, server, vdu))

    def test_a_server_keeps_its_image_while_the_program_is_away(self):
        vdu = self.vdu('Idle -> WireGuard -> Discard;')
        server, _image = self.image_of(vdu)
        self.cloud.images.append(base.image('other', 'other'))
        with mock.patch.object(elements, 'needed', return_value=None):
            self.assertTrue(servers.is_as_wanted(self.cloud, server, vdu))
            server.image.id = 'other'
            self.assertFalse(servers.is_as_wanted(self.cloud, server, vdu))

    def test_nothing_is_made_without_an_image(self):
        del self.cloud.images[1]
        with self.assertRaisesRegex(exception.NoImage, 'WireGuard'):
            self.image_of(self.vdu('Idle -> WireGuard -> Discard;'))
        self.assertEqual({}, self.cloud.servers)


class ElementsTest(base.TestCase):

    def test_without_the_program_the_groups_of_the_package_count(self):
        self.assertEqual(_NEEDED, elements.needed('x', _NEEDED, _OWN))
        self.assertIsNone(elements.needed('x', None, _OWN))

    def test_the_program_knows_better(self):
        base.use_checker(self)
        self.assertEqual({'device': 'ToDevice', 'standard': 'Queue'},
                         elements.needed('x', _NEEDED, _OWN))
        with self.assertRaises(checker.ConfigurationError):
            elements.find('Idle -> NoSuch;', _OWN)
        self.assertIsNone(elements.needed('Idle -> NoSuch;', _NEEDED, _OWN))

    def test_a_package_has_a_bounded_number_of_checks(self):
        budget = elements.Budget()
        self.assertEqual([True] * 16 + [False] * 4,
                         [budget.takes('x') for _ in range(20)])
        budget = elements.Budget()
        self.assertEqual([True, False, False], [
            budget.takes(text) for text in (
                'x' * 900_000, '\x01' * 100_000, 'x')])

    def test_faults_of_a_package(self):
        base.use_checker(self)
        self.assertEqual([], elements.faults([
            ['a.click', 'x', None],
            ['b.click', 'x', {'device': 'X', 'standard': 'X', 'y': 'Y'}]],
            _OWN))
        found = elements.faults([['a.click', 'Idle -> NoSuch;', None],
                                 ['b.click', 'x', {'device': 'X'}]], _OWN)
        self.assertEqual("a.click:1:9: unknown class 'NoSuch'", found[0])
        self.assertIn('docs/reference/elements.md', found[1])
        self.assertIn('b.click: the policy does not name the groups of '
                      'elements standard (class Queue)', found[2])


#: Notes each text that it reads, and whether two run at the same time.
_COUNTING = '''
with open(here / 'texts', 'a') as file:
    file.write(text + '\\n')
while text.startswith('slow'):
    pass
try:
    (here / 'busy').mkdir()
except FileExistsError:
    (here / 'two').touch()
else:
    (here / 'busy').rmdir()
print('standard Queue')
'''


class CostTest(base.TestCase):
    """A tenant's texts take the program a bounded time and memory."""

    def setUp(self):
        super().setUp()
        self.folder = base.use_checker(self, _COUNTING)

    def texts(self):
        return (self.folder / 'texts').read_text().split()

    def limit(self):
        """Let a slow text end by its processor time on a busy machine, too."""
        self.enterContext(mock.patch.object(
            elements, 'LIMITS', dataclasses.replace(
                elements.LIMITS, cpu_s=0.5, wall_s=60)))

    def test_the_program_reads_a_text_once(self):
        for _guest in range(3):
            for text in 'a', 'b':
                self.assertEqual({'standard': 'Queue'}, elements.needed(
                    text, None, elements.Allowance('p')))
        self.assertEqual(['a', 'b'], self.texts())

    def test_it_keeps_a_bounded_number_of_answers(self):
        answers = elements._Answers()
        for number in range(elements._MOST_KEPT + 1):
            answers.of(number, lambda: (None, True))
        self.assertEqual(elements._MOST_KEPT, len(answers._kept))
        self.assertEqual(1, answers.of(0, lambda: (1, False)))
        self.assertEqual(2, answers.of(0, lambda: (2, True)))
        self.assertEqual(2, answers.of(0, lambda: self.fail('known')))

    def test_a_slow_text_is_read_once(self):
        self.limit()
        for _guest in range(2):
            self.assertIsNone(elements.needed(
                'slow', None, elements.Allowance('p', seconds=60)))
        self.assertEqual(['slow'], self.texts())

    def test_slow_texts_of_a_request_share_a_time(self):
        self.limit()
        clock = itertools.count(0, 61)
        allowance = elements.Allowance('p', seconds=60,
                                       clock=lambda: next(clock))
        found = [elements.needed(f'slow{number}', None, allowance)
                 for number in range(8)]
        self.assertEqual(([None] * 8, ['slow0']), (found, self.texts()))

    def test_faults_share_a_time(self):
        clock = iter(range(0, 1000, 4))
        self.assertEqual([], elements.faults(
            [['x.click', f'text{number}', None] for number in range(9)],
            elements.Allowance('p', clock=lambda: next(clock))))
        self.assertEqual(['text0', 'text1'], self.texts())

    def test_few_programs_run_at_the_same_time(self):
        self.enterContext(mock.patch.object(
            elements, '_programs', fair_queue.FairQueue(1, 99, 99)))
        threads = [threading.Thread(target=elements.needed, args=(
            f'{n}', None, elements.Allowance(f'project{n % 3}')))
            for n in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(9, len(self.texts()))
        self.assertFalse((self.folder / 'two').exists())

    def test_a_project_waits_for_one_text_of_each_other_one(self):
        queue = fair_queue.FairQueue(1, 99, 99)
        self.enterContext(mock.patch.object(elements, '_programs', queue))
        with queue.entry('first') as place, place:
            threads = []
            for owner, text in (('greedy', 'a'), ('greedy', 'b'),
                                ('greedy', 'c'), ('other', 'd')):
                threads.append(threading.Thread(
                    target=elements.needed,
                    args=(text, None, elements.Allowance(owner))))
                threads[-1].start()
                test_bounded_review.FairQueueTest._wait_until(
                    queue, len(threads))
        for thread in threads:
            thread.join()
        self.assertEqual(['a', 'd', 'b', 'c'], self.texts())
