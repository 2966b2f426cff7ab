# SPDX-License-Identifier: Apache-2.0
"""What one project uploads costs the others little.

Tacker's API serves all projects from one thread. So the processor time that
an upload takes from this thread is how long another request waits for it.
"""

import contextlib
import dataclasses
import threading
from unittest import mock

from clickos_lab import bounds
import eventlet
import webob

from tacker_clickos import api_filter
from tacker_clickos import owned
from tacker_clickos.package import bounded_review
from tacker_clickos.package import fair_queue
from tests.unit import corpus
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import cost
from tests.unit.tacker_clickos import test_api_filter
from tests.unit.tacker_clickos import test_csar
from tests.unit.tacker_clickos import test_package

#: One text of each class; interfaces/tests tries all.
_TEXTS = ('base 60, 619 bytes', 'base 60, a key', 'digits of a key',
          'aliases that expand', 'deep lists', 'many documents',
          'a key twice', 'deep merge keys', 'a tag of Python',
          'not UTF-8')

of_project = test_api_filter.of_project


class CostTest(test_package.PackageTestCase):

    limit_s = 120

    def setUp(self):
        super().setUp()
        # A service's first upload imports modules.
        self.put(test_package.csar(test_package.files()))

    def upload(self, content):
        """Return the answer, whose cost for the thread is checked."""
        answers = []
        bounds.hold('max_package_upload_thread_seconds', cost.least_thread_s(
            lambda: answers.append(self.put(content))))
        return answers[-1]

    def assertBounded(self, content):
        answer = self.upload(content)
        self.assertEqual(400, answer.status_int)
        self.assertNotIn('its review', answer.json['detail'])
        return answer.json['detail']

    def test_hostile_texts(self):
        texts = corpus.yaml_texts
        for name in _TEXTS:
            with self.subTest(name):
                told = self.assertBounded(self.added(
                    texts.content(name)[:200 * 1024]))
                self.assertIn('Definitions/more.yaml', told)
                self.assertIn(texts.TEXTS[name][1], told)

    def test_hostile_archives(self):
        for name, content in corpus.ARCHIVES.items():
            with self.subTest(name):
                self.assertBounded(content)

    def test_a_good_package(self):
        self.assertEqual(200, self.upload(test_package.csar(
            test_package.files())).status_int)

    def test_numbers_as_keys(self):
        """One of 5,000 digits was an answer 500 once."""
        for text in ('0x' + 'f' * 6000 + ': 1',
                     'a: {0x' + 'f' * 6000 + ': {b: x}}'):
            self.assertPutRefused(self.added(text), 'more.yaml:1',
                                  'a number of 6002 characters')


class ElementsTest(test_package.PackageTestCase):

    def setUp(self):
        super().setUp()
        base.use_checker(self)

    def test_a_class_that_no_guest_has(self):
        folder = self.package / 'firewall'
        base.build_package(folder)
        path = folder / 'Files/firewall.click'
        path.write_text(path.read_text() + 'Idle -> NoSuch -> Discard;')
        self.assertPutRefused(
            test_package.csar(test_csar.build_csar.collect(folder)),
            'firewall.click:1:9', "class 'NoSuch'")

    def test_a_package_without_the_name_of_a_group(self):
        for named, status in (('{device: ToDevice}', 400),
                              ("{device: ToDevice, standard: 'Null'}", 200)):
            answer = self.put(self.changed(
                test_package.VNFD, 'artifact: click',
                'artifact: click\n          groups: %s' % named))
            self.assertEqual(status, answer.status_int)
        self.assertPutRefused(
            self.changed(test_package.VNFD, 'artifact: click',
                         'artifact: click\n          groups: [device]'),
            'firewall.yaml', 'groups: expected at most 64 groups')


class QueueTest(test_package.PackageTestCase):

    def setUp(self):
        super().setUp()
        self.package_ = test_package.csar(test_package.files())
        self.patch(owned, 'require_path')       # has no database
        few = mock.patch.object(bounded_review, '_queue',
                                fair_queue.FairQueue(1, 2, 3))
        few.start()
        self.addCleanup(few.stop)

    def test_a_project_with_too_many_uploads(self):
        with contextlib.ExitStack() as others:
            for _number in range(2):
                others.enter_context(bounded_review.upload('one'))
            refused = self.put(self.package_, environ=of_project('one'))
            self.assertEqual((429, '5'), (refused.status_int,
                                          refused.headers['Retry-After']))
            self.assertEqual('application/problem+json',
                             refused.content_type)
            self.assertEqual(
                'uploads of packages: 2 wait already, the limit for a project'
                ' is 2; try again', refused.json['detail'])
            self.assertEqual(200, self.put(
                self.package_, environ=of_project('two')).status_int)
            others.enter_context(bounded_review.upload('two'))
            self.assertEqual(503, self.put(
                self.package_, environ=of_project('three')).status_int)
        self.assertEqual(200, self.put(
            self.package_, environ=of_project('one')).status_int)

    def test_refused_uploads_leave_the_queue(self):
        for _again in range(4):
            self.assertPutRefused(
                b'no zip', 'the package', 'not a zip archive',
                environ=of_project('one'))

    def test_a_client_that_sends_no_more_leaves_the_queue(self):
        body = mock.Mock(spec_set=('read',))
        body.read.side_effect = lambda _size: eventlet.Event().wait()
        with mock.patch.object(api_filter, '_TAKE_S', 0.01):
            for _again in range(3):
                request = webob.Request.blank(
                    test_api_filter.PACKAGE, method='PUT',
                    environ=of_project('one'))
                request.environ.update({'wsgi.input': body,
                                        'wsgi.input_terminated': True})
                request.environ.pop('CONTENT_LENGTH', None)
                refused = request.get_response(api_filter.factory(
                    {}, api='packages')(None))
                self.assertEqual(
                    (400, 'the body did not come within 0.01 s'),
                    (refused.status_int, refused.json['detail']))

    def test_a_review_without_end_is_ended(self):
        for limits, reason in (
                ({'cpu_s': 0.01}, 'its review took more than 0.01 s of'),
                ({'memory_bytes': 1 << 26}, 'its review ended with status'),
                ({'wall_s': 0.01}, 'its review took more than 0.01 s')):
            with self.subTest(limits), mock.patch.object(
                    bounded_review, 'LIMITS', dataclasses.replace(
                        bounded_review.LIMITS, **limits)):
                self.assertPutRefused(self.package_, 'the package', reason)


class FairQueueTest(test_package.PackageTestCase):

    def order(self, places, arrivals):
        """Return the owners in the order in which they get places.

        Every one has arrived before the first place is free.
        """
        queue = fair_queue.FairQueue(places, 9, 99)
        got, threads = [], []
        with contextlib.ExitStack() as held:
            for number in range(places):
                entry = held.enter_context(queue.entry('first %d' % number))
                held.enter_context(entry)
            for count, owner in enumerate(arrivals, 1):
                threads.append(threading.Thread(
                    target=self._take, args=(queue, owner, got)))
                threads[-1].start()
                self._wait_until(queue, count)
        for thread in threads:
            thread.join()
        return got

    @staticmethod
    def _take(queue, owner, got):
        with queue.entry(owner) as place, place:
            got.append(owner)

    @staticmethod
    def _wait_until(queue, count):
        """Wait until this many entries stand in line."""
        while True:
            with queue._changed:
                if sum(map(len, queue._waiting.values())) == count:
                    return
                queue._changed.wait(0.01)

    def test_owners_take_turns(self):
        self.assertEqual(['a', 'b', 'c', 'a', 'b', 'a'],
                         self.order(1, 'aaabbc'))

    def test_an_owner_has_one_place_at_a_time(self):
        queue = fair_queue.FairQueue(2, 9, 99)
        done = threading.Event()
        with queue.entry('a') as place, place:
            second = threading.Thread(target=self._take,
                                      args=(queue, 'a', []))
            second.start()
            self._wait_until(queue, 1)
            with queue.entry('b') as other, other:
                done.set()
            self._wait_until(queue, 1)
        second.join()
        self.assertTrue(done.is_set())

    def test_few_owners_do_not_keep_out_others(self):
        for places, of_owner, of_all in ((2, 32, 128), (2, 4, 64)):
            queue, owners = fair_queue.FairQueue(places, of_owner, of_all), 0
            with contextlib.ExitStack() as held:
                with self.assertRaises(fair_queue.Full) as full:
                    while True:
                        entered = self._enter_all(queue, held, str(owners))
                        owners += bool(entered)
                self.assertFalse(full.exception.of_owner)
                self.assertEqual(of_all, queue._room._held.total())
                # Three quarters as they like, then each has one.
                self.assertEqual(of_all * 3 // 4 // of_owner + of_all // 4,
                                 owners)
            self.assertEqual({}, dict(queue._room._held))

    @staticmethod
    def _enter_all(queue, held, owner):
        """Enter as often as an owner may; return how often."""
        held.enter_context(queue.entry(owner))
        count = 1
        with contextlib.suppress(fair_queue.Full):
            while True:
                held.enter_context(queue.entry(owner))
                count += 1
        return count

    def test_one_that_gives_up_stops_nobody(self):
        queue = fair_queue.FairQueue(1, 9, 99)
        with queue.entry('a') as place, place:
            with mock.patch.object(queue._changed, 'wait_for',
                                   side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    self._take(queue, 'b', [])
        got = []
        self._take(queue, 'c', got)
        self.assertEqual(['c'], got)
        self.assertEqual(({}, set()), (dict(queue._room._held), queue._busy))

    def test_bytes_of_few_owners_leave_room_for_others(self):
        room = fair_queue.Room(8, 16)
        with contextlib.ExitStack() as held:
            for owner, size, of_owner in (
                    ('a', 9, True), ('a', 4, None), ('a', 4, None),
                    ('a', 1, True), ('b', 3, None), ('b', 2, False),
                    ('b', 1, None), ('c', 5, False), ('c', 4, None),
                    ('d', 1, False)):
                if of_owner is None:
                    held.enter_context(room.taken(owner, size))
                    continue
                with self.assertRaises(fair_queue.Full) as full:
                    held.enter_context(room.taken(owner, size))
                self.assertEqual(of_owner, full.exception.of_owner)
        self.assertEqual({}, dict(room._held))
