# SPDX-License-Identifier: Apache-2.0
"""Neutron's and networking-sfc's tables in memory."""

import itertools

from networking_sfc.db import flowclassifier_db
from networking_sfc.db import sfc_db
from neutron.db.models import agent as agent_model
from neutron.db.models import allowed_address_pair
from neutron.db.models import external_net
from neutron.db.models import flavor
from neutron.db.models import l3
from neutron.db.models import segment
from neutron.db.models import tag
from neutron.db import models_v2
from neutron.db.port_security import models as security_models
from neutron.plugins.ml2 import models
from neutron_lib.db import api as db_api
from neutron_lib.db import standard_attr
from oslo_config import cfg
from oslo_db import options as db_options
import testtools

_TABLES = [model.__table__ for model in (
    standard_attr.StandardAttribute, tag.Tag, models_v2.Network,
    models_v2.Port,
    segment.NetworkSegment, models_v2.Subnet, models_v2.IPAllocation,
    allowed_address_pair.AllowedAddressPair, external_net.ExternalNetwork,
    security_models.PortSecurityBinding, flavor.Flavor, l3.FloatingIP,
    l3.Router,
    models.PortBinding, agent_model.Agent, sfc_db.PortPairGroup,
    sfc_db.PortPair,
    sfc_db.PortChain, sfc_db.ChainGroupAssoc, sfc_db.ChainClassifierAssoc,
    sfc_db.ChainParameter, sfc_db.ServiceFunctionParam,
    sfc_db.PortPairGroupParam, flowclassifier_db.FlowClassifier)]


class TablesCase(testtools.TestCase):
    """A network of the project owner, and three ports of the project us."""

    def setUp(self):
        super().setUp()
        cfg.CONF([])   # of the policy of contexts
        db_options.set_defaults(cfg.CONF, connection='sqlite://')
        engine = db_api.get_writer_session().get_bind()
        for table in _TABLES:
            table.create(engine)
            self.addCleanup(table.drop, engine)
        self.connection = engine.connect()
        self.addCleanup(self.connection.close)
        self._numbers = itertools.count()
        self.insert_resource('networks', id='net', project_id='owner')
        for n, port in enumerate(('one', 'two', 'three')):
            self.insert_port(port, 'us', n)

    def insert_port(self, port, project, number):
        """Insert a port with the MAC address of this number."""
        self.insert_resource(
            'ports', id=port, network_id='net', device_id='s',
            device_owner='', status='ACTIVE', project_id=project,
            admin_state_up=True, mac_address='fa:16:3e:00:00:%02x' % number)

    def insert_resource(self, name, **values):
        """Insert a row with its standard attributes."""
        number = next(self._numbers)
        self.insert('standardattributes', id=number, resource_type=name,
                    revision_number=1)
        self.insert(name, standard_attr_id=number, **values)

    def insert(self, name, **values):
        """Insert a row into a table."""
        table, = (each for each in _TABLES if each.name == name)
        self.connection.execute(table.insert(), values)
        self.connection.commit()

    def update(self, name, **values):
        """Change all rows of a table."""
        table, = (each for each in _TABLES if each.name == name)
        self.connection.execute(table.update(), values)
        self.connection.commit()
