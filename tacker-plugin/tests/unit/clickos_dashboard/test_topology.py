# SPDX-License-Identifier: Apache-2.0
"""The picture of a project: what hangs together, and where it stands."""

import itertools
import re
import types
import unittest
from unittest import mock

from django.urls import reverse
from openstack_dashboard import api

from clickos_dashboard.api import chains as sfc
from clickos_dashboard.api import ports as known_ports
from clickos_dashboard.topology import layout
from clickos_dashboard.topology import model
from clickos_dashboard.topology import views
from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import project
from tests.unit.clickos_dashboard import test_chains

INDEX = reverse('horizon:clickos:topology:index')
_NETWORKS = 'abcdefghijklmnopqr'
_MARK = f'clickos-vnf:{project.key("vnf", "a")}'


def _vnf(name):
    return types.SimpleNamespace(id=project.key('vnf', name), name=name,
                                 status='active')


def _chain(name, *hops):
    """Return a chain; a hop is (name, ports)."""
    return sfc.Chain(project.key('chain', name), name, True, tuple(
        sfc.Hop(project.key('hop', each), each, False, False, tuple(
            port['id'] for port in ports)) for each, ports in hops))


class NamesTest(unittest.TestCase):

    def test_a_port_has_the_name_of_its_connection_point(self):
        for name, wanted in (('VDU1-0-left', 'left'),
                             ('VDU-x-12-left-1', 'left-1'),
                             ('mine', 'mine'), ('', 'id')):
            self.assertEqual(wanted, known_ports.point_of({
                'id': 'id', 'name': name, 'description': _MARK}))
        self.assertEqual('web-0-eth0', known_ports.point_of({
            'id': 'id', 'name': 'web-0-eth0', 'description': ''}))

    def test_only_ids_are_taken_from_texts_of_a_port(self):
        for text in ('', 'dhcp', '../../admin', 'clickos-vnf:../x', 'a b'):
            port = {'description': f'clickos-vnf:{text}', 'device_id': text,
                    'mac_address': 'fa:16:3e:00:00:01'}
            self.assertEqual(('', '', ''), (
                known_ports.vnf_of(port), known_ports.server_of(port),
                known_ports.counted([port])))
        port = {'device_id': project.key('server'), 'mac_address': 'a b'}
        self.assertEqual('', known_ports.counted([port]))


class ModelTest(unittest.TestCase):

    def nodes(self, names, chains=(), **points):
        found = {name: project.ports('p', name, *points.get(name, (
            ('left', 'left'),))) for name in names}
        return model.nodes([_vnf(name) for name in names],
                           [port for ports in found.values()
                            for port in ports], {},
                           [each(found) for each in chains])

    def test_guests_of_a_vnf_share_its_connection_points(self):
        ports = project.ports('p', 'a', ('in', 'left'), ('out', 'right'),
                              guests=3)
        (node,) = model.nodes([_vnf('a')], ports, {
            project.key('network', 'left'): 'LEFT'}, [])
        self.assertEqual(['in', 'out'], [p.name for p in node.points])
        self.assertEqual('LEFT', node.points[0].network.name)
        self.assertEqual(3, len(node.points[0].counted.split()))

    def test_hops_of_a_chain_stand_in_its_order(self):
        found = self.nodes('abcd', [lambda ports: _chain(
            'web', ('x', ports['d']), ('y', ports['b']))])
        self.assertEqual(['d', 'b', 'a', 'c'], [n.name for n in found])
        self.assertEqual([(1,), (2,), (), ()], [
            tuple(place.number for place in node.places) for node in found])

    def test_a_hop_without_a_vnf_is_a_guest(self):
        ports = project.ports('p', 'plain', ('eth0', 'left'))
        (node,) = model.nodes([], ports, {}, [_chain('web', ('x', ports))])
        self.assertEqual(('x', False), (node.name, node.is_vnf))
        self.assertIn(project.key('server', 'plain', 0), node.address)

    def test_a_vnf_has_a_bound_of_points(self):
        points = [(f'p{n:02}', 'left') for n in range(20)]
        (node,) = self.nodes('a', a=points)
        self.assertEqual((model.MOST_POINTS, 4),
                         (len(node.points), node.omitted))


class LayoutTest(unittest.TestCase):

    def draw(self, points, chains=()):
        """Return the Picture of VNFs: {name: ((point, network), ...)}."""
        ports = {name: project.ports('p', name, *each)
                 for name, each in points.items()}
        return layout.draw(model.nodes(
            [_vnf(name) for name in points],
            list(itertools.chain(*ports.values())),
            {project.key('network', name): name for name in _NETWORKS},
            [_chain(name, *((hop, ports[hop]) for hop in hops))
             for name, hops in chains]))

    def check(self, picture):
        """Check that no box or edge lies on a box, and all is inside."""
        boxes = picture.boxes
        for one, other in itertools.combinations(boxes, 2):
            self.assertFalse(
                one.x < other.x + other.width and
                other.x < one.x + one.width and
                one.y < other.y + other.height and
                other.y < one.y + one.height, (one.node.name, other.node.name))
        for box, other in itertools.permutations(boxes, 2):
            for edge in box.edges:
                ends = sorted((edge.x, edge.lane.x))
                self.assertFalse(
                    other.y < edge.y < other.y + other.height and
                    ends[0] < other.x + other.width and ends[1] > other.x,
                    (edge.point.name, other.node.name))
        for box in boxes:
            self.assertLessEqual(box.x + box.width, picture.width)
            self.assertLessEqual(box.y + box.height, picture.height)
            for edge in box.edges:
                self.assertTrue(box.y < edge.y < box.y + box.height)

    def test_a_row_of_vnfs_has_one_line(self):
        picture = self.draw({'x': (('l', 'a'), ('r', 'b')),
                             'y': (('l', 'b'), ('r', 'c'))})
        self.check(picture)
        self.assertEqual(['a', 'b', 'c'],
                         [lane.network.name for lane in picture.lanes])
        self.assertEqual(1, len({box.y for box in picture.boxes}))

    def test_nothing_lies_on_something_else(self):
        networks = 'abcdef'
        points = {f'v{n:02}': tuple(
            (f'p{at}', networks[(n * step + at * at) % 6])
            for at in range(1 + n % 4))
            for n in range(24) for step in (1 + n % 5,)}
        picture = self.draw(points)
        self.check(picture)
        self.assertEqual(24, len(picture.boxes))

    def test_arrows_lead_through_the_hops(self):
        points = {name: (('in', 'a'), ('out', 'a')) for name in 'xyz'}
        points['far'] = (('l', 'c'), ('r', 'd'))
        picture = self.draw(points, [('one', 'xyz'), ('two', ('z', 'far'))])
        self.check(picture)
        self.assertEqual([('one', 2), ('one', 3), ('two', 2)], [
            (arrow.chain.name, arrow.number) for arrow in picture.arrows])

    def test_the_words_of_an_arrow_stand_at_its_middle(self):
        points = {name: (('in', 'a'), ('out', 'a')) for name in 'xyz'}
        points['far'] = (('l', 'c'), ('r', 'd'))
        picture = self.draw(points, [('one', ('x', 'y')), ('two', 'xz'),
                                     ('three', ('z', 'far'))])
        for arrow in picture.arrows:
            numbers = [int(each) for each in re.findall(r'-?\d+',
                                                        arrow.path)]
            for place, all_of in ((arrow.x - 9, numbers[::2]),
                                  (arrow.y, numbers[1::2])):
                self.assertTrue(min(all_of) <= place <= max(all_of), arrow)

    def test_arrows_have_a_bound(self):
        hops = [f'v{n:02}' for n in range(24)]
        picture = self.draw({name: (('in', 'a'),) for name in hops}, [
            (f'c{n:03}', hops[:20]) for n in range(100)])
        self.assertEqual(layout.MOST_CHAINS * 19, len(picture.arrows))

    def test_lanes_have_a_bound(self):
        points = {f'v{n}': (('l', network),)
                  for n, network in enumerate(_NETWORKS)}
        picture = self.draw(points)
        self.check(picture)
        self.assertEqual(layout.MOST_LANES, len(picture.lanes))
        self.assertEqual(layout.MOST_LANES,
                         sum(len(box.edges) for box in picture.boxes))

    def test_a_vnf_without_ports(self):
        picture = layout.draw(model.nodes([_vnf('a')], [], {}, []))
        self.assertEqual(((), 1), (picture.lanes, len(picture.boxes)))


class PageTest(base.PageTest):

    def setUp(self):
        super().setUp()
        self.project = project.Project(self)

    def drawn(self, **query):
        self.project.fill()
        answer = self.client.get(INDEX, query)
        self.assertEqual(200, answer.status_code)
        return answer.context

    def shown(self, **query):
        return [box.node.name for box in self.drawn(
            **query)['picture'].boxes]

    def test_the_picture_and_its_table_show_the_same(self):
        self.project.fill()
        text = self.page(INDEX)
        for name in (*self.project.points, *project.NETWORKS, 'web'):
            self.shows(text, f'<title>{name}')
        keys = text.count('class="edge ')
        self.assertEqual(11, keys)
        self.assertEqual(2 * keys, text.count('data-key="'))
        self.shows(text, project.mac('nat', 2, 'outside'), '× 3', '10.0.0.5')

    def test_filters(self):
        network = project.key('network', 'right')
        self.assertEqual({'nat', 'tunnel', 'monitor'},
                         set(self.shown(network=network)))
        self.assertEqual(['ids', 'dpi'],
                         self.shown(chain=test_chains.CHAIN))
        self.assertEqual(['tunnel'], self.shown(text='TUNN'))
        self.assertEqual(['nat'], self.shown(text='10.0.1.7'))
        self.assertEqual([], self.shown(text='none'))
        self.shows(self.page(INDEX, query_params={'text': 'none'}),
                   'No VNF fits')

    def test_a_large_project_has_pages(self):
        self.project.add(300)
        first = self.drawn()
        self.assertEqual((306, views.MOST_NODES),
                         (first['count'], len(first['picture'].boxes)))
        last = self.drawn(**{'from': 288, 'text': ''})
        self.assertEqual((289, 306, 18, False), (
            last['first'], last['last'], len(last['picture'].boxes),
            last['after']))
        for place in ('-1', '9' * 30, 'x', '307', '٣'):
            self.assertEqual(1, self.drawn(**{'from': place})['first'])

    def test_a_large_project_costs_no_more_requests(self):
        self.project.add(300)
        self.project.fill()
        with mock.patch.object(self.cloud, 'send', autospec=True,
                               side_effect=self.cloud.send) as send:
            self.page(INDEX)
        self.assertLessEqual(send.call_count, 6)

    def test_an_empty_project_is_told_what_to_do(self):
        self.cloud.answers['GET /vnflcm/v1/vnf_instances'] = []
        self.shows(self.page(INDEX), 'There is no VNF yet')

    def test_a_service_that_is_away_hides_its_part_only(self):
        self.project.fill()
        self.cloud.answers[f'GET {project.SFC}port_chains'] = (503, {})
        api.neutron.port_list.side_effect = self.exceptions.neutron
        self.shows(self.page(INDEX), 'firewall', 'have no port',
                   'Neutron does not list chains',
                   'Neutron does not list ports')

    def test_what_is_left_out_is_told(self):
        self.project.points['wide'] = [(f'p{n:02}', 'left')
                                       for n in range(18)]
        self.project.fill()
        self.shows(self.page(INDEX), '2 more connection points')

    def test_chains_without_arrows_are_told(self):
        self.project.fill()
        found = self.cloud.answers[f'GET {project.SFC}port_chains']
        found['port_chains'] = [
            {**found['port_chains'][0], 'id': project.key('chain', n),
             'name': f'c{n}'} for n in range(layout.MOST_CHAINS + 3)]
        text = self.page(INDEX)
        self.assertEqual(layout.MOST_CHAINS, text.count('<li data-chain='))
        self.shows(text, '3 more chains', reverse(
            'horizon:clickos:chains:counters',
            args=(project.key('chain', 0),)))

    def test_ports_of_other_projects_are_left_out(self):
        self.project.fill()
        api.neutron.port_list.return_value[0]._apidict['project_id'] = 'x'
        text = self.page(INDEX)
        self.hides(text, project.mac('firewall', 0, 'left'))
