# SPDX-License-Identifier: Apache-2.0
"""Searches, questions and refusals in a browser, with hostile names."""

from tests.browser import window
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import hostile
from tests.unit.clickos_dashboard import test_chains

_WINDOW = '.modal.in'
_VNF = f'/vnflcm/v1/vnf_instances/{cloud.VNF}'
_OPERATIONS = 'GET /vnflcm/v1/vnf_lcm_op_occs'
_CONTENT = f'GET /vnfpkgm/v1/vnf_packages/{cloud.PACKAGE}/package_content'
#: Horizon changes what Angular would evaluate, which comes after this.
_BEGIN = hostile.EVIL[:hostile.EVIL.index('{$')]
_REASON = f'is not a value; {_BEGIN}'
_SUBMIT = '''
document.querySelector(arguments[0] + ' form').requestSubmit();
'''
_VALUE = 'return document.querySelector(arguments[0]).value'


class FormsTest(window.BrowserTest):

    def setUp(self):
        super().setUp()
        self.places = hostile.addresses()

    def check(self):
        """Check that no text ran, and that axe-core finds nothing."""
        self.assertEqual([], self.errors())
        self.assertNotEqual('ran', self.driver.title)
        self.assertEqual([], self.audit())

    def submit(self, part=_WINDOW):
        """Send a form."""
        self.script(_SUBMIT, part)

    def value(self, selector):
        """Return what a field holds."""
        return self.script(_VALUE, selector)


class SearchTest(FormsTest):

    def setUp(self):
        super().setUp()
        vnf = self.cloud.answers[f'GET {_VNF}']
        self.cloud.answers['GET /vnflcm/v1/vnf_instances'] = [
            {**vnf, 'id': f'{i:08}',
             'vnfInstanceName': f'edge-{i:02} {hostile.EVIL}'}
            for i in range(50)]

    def rows(self, table='vnfs'):
        """Return how many rows a table has."""
        return self.script('return document.querySelectorAll(arguments[0])'
                           '.length', f'#{table} tbody tr[data-object-id]')

    def test_a_search_outlives_pages_and_reloads(self):
        self.open(self.places['vnfs:index'])
        self.fill('#id_vnfs_search', 'edge-1 EVIL-MARK')
        self.see('#id_vnfs_search').send_keys('\ue007')
        self.until(lambda: self.rows() == 10, 'not 10 rows')
        self.driver.refresh()
        self.until(lambda: self.rows() == 10, 'not 10 rows after a reload')
        self.assertEqual('edge-1 EVIL-MARK', self.value('#id_vnfs_search'))
        self.check()
        self.fill('#id_vnfs_search', 'edge-')
        self.submit('#content_body')
        self.until(lambda: self.rows() == 20, 'not 20 rows')
        self.click('a[href*="&marker="]')
        self.until(lambda: 'edge-20' in self.text('#vnfs'), 'no second page')
        self.assertEqual('edge-', self.value('#id_vnfs_search'))
        self.fill('#id_vnfs_search', hostile.EVIL[:255])
        self.submit('#content_body')
        self.until(lambda: self.value('#id_vnfs_search')
                   == hostile.EVIL[:255].strip(), 'the search is lost')
        self.check()

    def test_each_list_has_a_search(self):
        for name, table in (
                ('packages:index', 'packages'), ('guests:index', 'guests'),
                ('packages:catalog', 'catalog'), ('chains:index', 'chains')):
            with self.subTest(name):
                self.open(f'{self.places[name]}?{table}_search=evil-mark')
                self.assertEqual(1, self.rows(table))
                self.check()
                self.open(f'{self.places[name]}?{table}_search=absent')
                self.assertIn('Nothing in the list', self.text(f'#{table}'))
                self.check()

    def test_a_search_of_a_tab_comes_back_to_the_tab(self):
        self.open(self.places['vnfs:detail'])
        self.click('a[data-target="#vnf__handlers"]')
        self.fill('#id_handlers_search', 'fw.config')
        self.submit('#vnf__handlers')
        self.until(lambda: 'handlers_search=fw.config'
                   in self.driver.current_url, 'no search')
        self.see('#vnf__handlers.active #handlers')
        self.assertEqual(1, self.script(
            'return document.querySelectorAll("#handlers tbody tr").length'))
        self.check()


class QuestionsTest(FormsTest):

    def setUp(self):
        super().setUp()
        self.cloud.answers[_OPERATIONS] = [cloud.operation(
            operation=f'HEAL {hostile.EVIL}', operationState='FAILED_TEMP')]

    def asked(self, page, action):
        """Choose an action; return the question that comes."""
        self.open(page)
        self.click(f'button[value="{action}"]')
        self.see(f'{_WINDOW} .modal-body')
        self.check()
        self.assertEqual(0, self.script(
            'return document.querySelector(arguments[0]).children.length',
            f'{_WINDOW} .modal-body'), 'markup in the question')
        return self.text(f'{_WINDOW} .modal-body')

    def test_each_action_that_ends_something_names_it(self):
        for page in ('vnfs:index', 'vnfs:detail'):
            for name in ('retry', 'give_up', 'heal', 'terminate'):
                with self.subTest(f'{page} {name}'):
                    asked = self.asked(self.places[page],
                                       f'vnfs__{name}__{cloud.VNF}')
                    self.assertIn(_BEGIN, asked)
                    self.assertEqual(name in ('retry', 'give_up'),
                                     'It is HEAL' in asked)
                    self.assertEqual([], self.cloud.changes)

    def test_an_answer_acts(self):
        self.asked(self.places['vnfs:index'], f'vnfs__retry__{cloud.VNF}')
        self.click(f'{_WINDOW} .modal-footer .btn-primary')
        self.until(lambda: self.cloud.changes, 'nothing happens')
        self.assertEqual([(
            'POST', f'/vnflcm/v1/vnf_lcm_op_occs/{cloud.OPERATION}/retry',
            None)], self.cloud.changes)


class RefusalsTest(FormsTest):

    def setUp(self):
        super().setUp()
        refused = 400, {'detail': f'property rules: {_REASON}'}
        # A browser sends other line ends than a hostile id has.
        self.cloud.answers.update({
            'GET /v1.0/vims': {'vims': [
                {'id': cloud.VNF, 'name': hostile.EVIL}]},
            _CONTENT: cloud.csar(),
            'POST /vnflcm/v1/vnf_instances': {'id': cloud.VNF},
            f'POST {_VNF}/instantiate': refused, f'PATCH {_VNF}': refused})

    def test_a_property_of_a_launch(self):
        self.open(self.places['packages:index'])
        self.click(f'a.ajax-modal[href="{self.places["vnfs:launch"]}"]')
        self.fill(f'{_WINDOW} #id_name', 'kept')
        self.fill(f'{_WINDOW} #id_property_rules', 'permit all')
        self.submit()
        self.reason_stands_at_the_field()
        self.assertEqual('kept', self.value('#id_name'))
        self.assertIn('active', self.see(
            f'{_WINDOW} .tab-pane:has(#id_property_rules)')
            .get_attribute('class'))
        self.check()

    def test_a_property_of_an_update(self):
        self.open(self.places['vnfs:index'])
        self.click('a.ajax-modal[href$="/update"]')
        self.fill(f'{_WINDOW} #id_property_rules', 'permit all')
        self.submit()
        self.reason_stands_at_the_field()
        self.check()

    def reason_stands_at_the_field(self):
        """Wait for the reason; the form keeps what was typed."""
        self.until(lambda: _REASON in self.text(
            f'{_WINDOW} .form-group:has(#id_property_rules)'), 'no reason')
        self.assertEqual('permit all', self.value('#id_property_rules'))

    def test_addresses_of_both_families_are_checked_while_one_types(self):
        self.open(self.places['vnfs:launch'])
        field = 'input[id^=id_address_]'
        for text, fault in (('10.0.0.5, 2001:db8::5', ''),
                            ('10.0.0.5 2001', '2001: expected an address')):
            self.fill(field, text)
            self.assertIn(fault, self.text(f'{field} + .help-block'))
            self.assertEqual(str(bool(fault)).lower(), self.see(
                field).get_attribute('aria-invalid'))
        self.check()

    def test_fewer_guests_need_a_tick(self):
        info = self.cloud.answers[f'GET {_VNF}']['instantiatedVnfInfo']
        info['scaleStatus'] = [{'aspectId': 'a', 'scaleLevel': 1}]
        self.open(self.places['vnfs:scale'])
        self.assertIn(_BEGIN, self.text('label[for=id_sure]'))
        self.check()
        self.script('document.querySelector("#id_kind").value = "SCALE_IN"')
        self.submit('#content_body')
        self.until(lambda: 'only if you tick' in self.text('#content_body'),
                   'no refusal')
        self.assertEqual([], self.cloud.changes)
        self.assertEqual('SCALE_IN', self.value('#id_kind'))


class RuleTest(FormsTest):
    """The rule of a chain, whose every text is hostile."""

    def setUp(self):
        super().setUp()
        test_chains.with_rules(self.cloud.answers, {
            'id': test_chains.RULE, 'ethertype': 'IPv4', 'protocol': 'tcp',
            'destination_port_range_min': 80,
            'destination_port_range_max': 80})
        self.made = 'POST /v2.0/sfc/flow_classifiers'
        self.cloud.answers[self.made] = (
            201, {'flow_classifier': {'id': 'new'}})

    def change(self, port):
        """Open the form on the page of the chain, and send it."""
        self.open(self.places['chains:detail'])
        self.click(f'a.ajax-modal[href="{self.places["chains:rule"]}"]')
        self.see(f'{_WINDOW} #id_destination_port')
        self.assertEqual('80', self.value('#id_destination_port'))
        self.check()
        self.fill(f'{_WINDOW} #id_destination_port', port)
        self.submit()

    def test_a_rule_is_changed(self):
        self.change('443')
        self.until(lambda: len(self.cloud.changes) == 3, 'nothing happens')
        self.assertEqual(443, self.cloud.changes[0][2]['flow_classifier'][
            'destination_port_range_min'])
        self.until(lambda: 'Changed the rule' in self.text('body'),
                   'no success')
        self.check()

    def test_a_refusal_is_a_text(self):
        self.cloud.answers[self.made] = (409, {'NeutronError': {
            'type': 'x', 'detail': '', 'message': _REASON}})
        self.change('443')
        self.until(lambda: _REASON in self.text('body'), 'no reason')
        self.check()

    def test_wrong_ports_stand_at_their_field(self):
        self.change('443:80')
        self.until(lambda: 'the lower first' in self.text(
            f'{_WINDOW} .form-group:has(#id_destination_port)'), 'no reason')
        self.assertEqual([], self.cloud.changes)
        self.check()
