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
    models.PortBinding, agent_model.Agent,
    flowclassifier_db.FlowClassifier, flowclassifier_db.L7Parameter,
    sfc_db.PortPairGroup,
    sfc_db.PortPair,
    sfc_db.PortChain, sfc_db.ChainGroupAssoc, sfc_db.ChainClassifierAssoc,
    sfc_db.ChainParameter, sfc_db.ServiceFunctionParam,
    sfc_db.PortPairGroupParam)]


class MemoryCase(testtools.TestCase):
    """Some tables of Neutron, empty and in memory."""

    #: SQLAlchemy's tables, each after those that it refers to
    tables = ()

    def setUp(self):
        super().setUp()
        cfg.CONF([])   # of the policy of contexts
        db_options.set_defaults(cfg.CONF, connection='sqlite://')
        engine = db_api.get_writer_session().get_bind()
        for table in self.tables:
            table.create(engine)
            self.addCleanup(table.drop, engine)
        self.connection = engine.connect()
        self.addCleanup(self.connection.close)
        self._numbers = itertools.count()

    def insert_resource(self, kind, /, **values):
        """Insert a row with its standard attributes."""
        number = next(self._numbers)
        self.insert('standardattributes', id=number, resource_type=kind,
                    revision_number=1)
        self.insert(kind, standard_attr_id=number, **values)

    def insert(self, table, /, **values):
        """Insert a row into a table."""
        self._execute(self._table(table).insert(), values)

    def update(self, table, /, **values):
        """Change all rows of a table."""
        self._execute(self._table(table).update(), values)

    def _table(self, name):
        table, = (each for each in self.tables if each.name == name)
        return table

    def _execute(self, statement, values):
        self.connection.execute(statement, values)
        self.connection.commit()


class TablesCase(MemoryCase):
    """A network of the project owner, and three ports of the project us."""

    tables = _TABLES

    def setUp(self):
        super().setUp()
        self.insert_resource('networks', id='net', project_id='owner')
        for n, port in enumerate(('one', 'two', 'three')):
            self.insert_port(port, 'us', n)

    def insert_port(self, port, project, number, network='net'):
        """Insert a port with the MAC address of this number."""
        self.insert_resource(
            'ports', id=port, network_id=network, device_id='s',
            device_owner='', status='ACTIVE', project_id=project,
            admin_state_up=True, mac_address='fa:16:3e:00:00:%02x' % number)
