# SPDX-License-Identifier: Apache-2.0
"""What a retry of an operation shows, from its request to its end."""

import datetime
from unittest import mock

from oslo_utils import timeutils
from tacker import context as tacker_context
from tacker.db.db_sqlalchemy import models
from tacker import objects
import webob
import webob.dec

from tacker_clickos import api_filter
from tacker_clickos import early
from tacker_clickos import tacker_db
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import database


class RetryTest(database.DatabaseTestCase):

    def setUp(self):
        super().setUp()
        self.status = 202
        self.meanwhile = lambda: None
        self.make_vnf()

    def fail(self, state='FAILED_TEMP'):
        """Store an operation with an error, as Tacker does."""
        self.make_operation('HEAL', state, 5)
        found = self.operation()
        found.error = objects.ProblemDetails(
            context=self.context, status=500, detail='Nova is away')
        found.save()
        return found.id

    def retry(self, operation_id, how='retry'):
        @webob.dec.wsgify
        def tacker_api(_request):
            self.meanwhile()
            return webob.Response(status=self.status)
        request = webob.Request.blank(
            '/vnf_lcm_op_occs/%s/%s' % (operation_id, how), method='POST',
            environ={'tacker.context': tacker_context.get_admin_context()})
        return request.get_response(
            api_filter.factory({}, api='lifecycle')(tacker_api))

    def test_it_shows_at_once(self):
        operation_id = self.fail()
        self.assertEqual(202, self.retry(operation_id).status_int)
        found = self.operation()
        self.assertEqual('PROCESSING', found.operation_state)
        self.assertFalse(found.obj_attr_is_set('error') and found.error)

    def test_a_rollback_shows_at_once(self):
        """Else Tacker takes more, and carries out each."""
        operation_id = self.fail()
        before = self.operation().state_entered_time
        self.assertEqual([], tacker_db.open_operations('t'))
        self.assertEqual(202, self.retry(operation_id, 'rollback').status_int)
        found = self.operation()
        self.assertEqual('ROLLING_BACK', found.operation_state)
        self.assertEqual('Nova is away', found.error.detail)
        self.assertGreater(found.state_entered_time, before)
        self.assertEqual(1, len(tacker_db.open_operations('t')))

    def test_a_refused_one_changes_nothing(self):
        self.status = 409
        operation_id = self.fail()
        for how in ('retry', 'rollback'):
            self.retry(operation_id, how)
            found = self.operation()
            self.assertEqual('FAILED_TEMP', found.operation_state)
            self.assertEqual('Nova is away', found.error.detail)

    def test_one_that_is_over_already_keeps_its_end(self):
        operation_id = self.fail()

        def complete():
            found = self.operation()
            found.operation_state = 'COMPLETED'
            found.save()
        self.meanwhile = complete
        for how in ('retry', 'rollback'):
            self.retry(operation_id, how)
            self.assertEqual('COMPLETED', self.operation().operation_state)

    def test_one_request_alone_decides(self):
        """Also if another process has that one."""
        operation_id = self.fail()
        answers = []

        def others():
            self.meanwhile = lambda: None
            for how in ('retry', 'rollback', 'fail'):
                # What this process knows of it, another does not.
                with mock.patch.object(early, '_beginning', {}):
                    answers.append(self.retry(operation_id, how).status_int)
        for how in ('retry', 'rollback', 'fail'):
            self.change(models.VnfLcmOpOccs, operation_state='FAILED_TEMP')
            self.meanwhile = others
            self.assertEqual(202, self.retry(operation_id, how).status_int)
            self.assertIsNone(self.claim())
        self.assertEqual([409] * 9, answers)

    def test_a_claim_ends_without_its_process(self):
        operation_id = self.fail()
        with mock.patch.object(tacker_db, '_end_claim'):
            self.retry(operation_id, 'fail')
        self.assertEqual(409, self.retry(operation_id).status_int)
        self.change(models.VnfLcmOpOccs, deleted_at=timeutils.utcnow()
                    - datetime.timedelta(seconds=1))
        self.assertEqual(202, self.retry(operation_id).status_int)
        self.assertIsNone(self.claim())

    def test_a_claim_ends_with_its_request(self):
        operation_id = self.fail()
        self.meanwhile = mock.Mock(side_effect=KeyError)
        self.assertRaises(KeyError, self.retry, operation_id)
        self.assertIsNone(self.claim())

    def test_tacker_refuses_what_has_not_failed(self):
        self.status = 409
        operation_id = self.fail('COMPLETED')
        for how in ('retry', 'rollback', 'fail'):
            self.assertEqual(b'', self.retry(operation_id, how).body)

    def claim(self):
        return self.column(models.VnfLcmOpOccs, 'deleted_at')

    def test_what_is_completed_loses_its_old_error(self):
        self.fail('COMPLETED')
        tacker_db.forget_errors(self.context)
        found = self.operation()
        self.assertFalse(found.obj_attr_is_set('error') and found.error)

    def test_what_failed_keeps_its_error(self):
        self.fail()
        tacker_db.forget_errors(self.context)
        self.assertEqual('Nova is away', self.operation().error.detail)
        self.assertEqual(base.VNF_ID, self.operation().vnf_instance_id)
