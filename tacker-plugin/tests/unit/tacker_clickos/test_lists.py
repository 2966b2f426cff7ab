# SPDX-License-Identifier: Apache-2.0
"""Lists by Tacker's own code hold no connection after the answer."""

import gc
import tempfile

from oslo_db.sqlalchemy import enginefacade
from sqlalchemy import event
from sqlalchemy import orm
from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker import objects
import webob
import webob.dec

from tacker_clickos import api_filter
from tests.unit.tacker_clickos import base

#: path: what Tacker's controller asks for, and the filter of the paste file
_LISTS = {
    '/vnf_instances': ('VnfInstanceList', 'lifecycle'),
    '/vnf_lcm_op_occs': ('VnfLcmOpOccList', 'lifecycle'),
    '/vnf_packages': ('VnfPackagesList', 'packages')}


class ListsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        database = enginefacade.transaction_context()
        database.configure(connection=f'sqlite:///{folder.name}/tacker',
                           sqlite_synchronous=False)
        self.addCleanup(db_api.context_manager.patch_factory(database))
        engine = database.writer.get_engine()
        self.addCleanup(engine.dispose)
        models.VnfInstance.metadata.create_all(engine)
        self.held = 0
        event.listen(engine, 'checkout', lambda *_: self.count(1))
        event.listen(engine, 'checkin', lambda *_: self.count(-1))
        objects.register_all()
        orm.configure_mappers()
        self.patch(db_api, 'get_session')   # of the other requests

    def count(self, change):
        self.held += change

    def list(self, path):
        """Ask for a list; return the connections in use afterwards."""
        kind, api = _LISTS[path]

        @webob.dec.wsgify
        def tacker_api(request):
            found = getattr(objects, kind).get_by_marker_filter(
                request.environ['tacker.context'], None, None)
            return webob.Response(text=str(len(found)))

        request = webob.Request.blank(path, environ={
            'tacker.context': tacker_context.get_admin_context()})
        answer = request.get_response(
            api_filter.factory({}, api=api)(tacker_api))
        self.assertEqual('0', answer.text)
        return self.held

    def test_no_connection_is_in_use_after_a_list(self):
        gc.disable()
        self.addCleanup(gc.enable)
        for path in _LISTS:
            self.assertEqual(0, self.list(path), path)
