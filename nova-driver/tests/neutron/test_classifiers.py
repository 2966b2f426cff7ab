# SPDX-License-Identifier: Apache-2.0
"""Flow classifiers that overlap, on networking-sfc's tables in memory."""

from networking_sfc.db import flowclassifier_db
from networking_sfc.extensions import flowclassifier
from networking_sfc.extensions import sfc
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api

from neutron_clickos.sfc import classifiers
from neutron_clickos.sfc import plugin
from tests.neutron import base

_ANY = {key: None for key in (
    'protocol', 'source_port_range_min', 'source_port_range_max',
    'destination_port_range_min', 'destination_port_range_max',
    'source_ip_prefix', 'destination_ip_prefix', 'logical_source_port',
    'logical_destination_port')}


class ClassifiersTest(base.TablesCase):

    def setUp(self):
        super().setUp()
        self.context = neutron_context.get_admin_context()
        self.flows = classifiers.FlowClassifierPlugin.__new__(
            classifiers.FlowClassifierPlugin)
        self.chains = plugin.SfcPlugin.__new__(plugin.SfcPlugin)

    def make(self, project='us', **values):
        """Make a classifier as Neutron does, without drivers; return its id.
        """
        return flowclassifier_db.FlowClassifierDbPlugin.create_flow_classifier(
            self.flows, self.context, {'flow_classifier': {
                **_ANY, 'name': '', 'description': '', 'ethertype': 'IPv4',
                'project_id': project, 'l7_parameters': {}, **values}})['id']

    def give(self, chain, *flows):
        """Let a chain have these classifiers only."""
        with db_api.CONTEXT_WRITER.using(self.context):
            found = self.chains._get_port_chain(self.context, chain)
            self.chains._validate_flow_classifiers(self.context, flows, chain)
            self.chains._setup_chain_classifier_associations(
                self.context, found, flows)

    def test_a_chain_gets_a_classifier_that_overlaps_its_own(self):
        self.insert('sfc_port_chains', id='chain', chain_id=1)
        self.insert('sfc_port_chains', id='other', chain_id=2)
        old = self.make(protocol='tcp')
        self.give('chain', old)
        for values in ({}, {'protocol': 'tcp'},
                       {'protocol': 'tcp', 'source_ip_prefix': '10.0.0.0/8'}):
            new = self.make(**values)
            self.give('chain', new)
            flowclassifier_db.FlowClassifierDbPlugin.delete_flow_classifier(
                self.flows, self.context, old)
            old = new

    def test_two_chains_have_no_packet_in_common(self):
        self.insert('sfc_port_chains', id='chain', chain_id=1)
        self.insert('sfc_port_chains', id='other', chain_id=2)
        first, second = self.make(protocol='tcp'), self.make()
        self.give('chain', first)
        self.assertRaises(sfc.PortChainFlowClassifierInConflict, self.give,
                          'other', second)
        self.give('other', self.make(protocol='udp'))

    def test_classifiers_of_two_projects_do_not_overlap(self):
        self.make(protocol='tcp')
        self.assertRaises(flowclassifier.FlowClassifierInConflict, self.make,
                          'them')
        self.make('them', protocol='udp')
