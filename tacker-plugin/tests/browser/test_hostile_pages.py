# SPDX-License-Identifier: Apache-2.0
"""No text of a tenant or guest runs in a browser, on any page of ours.

The first tests take the policy away, so that the pages have to hold alone.
The last ones let markup and expressions in, so that the policy has to.
"""

from unittest import mock

from clickos_dashboard import content_security
from tests.browser import window
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import hostile

_NO_POLICY = "default-src * data: 'unsafe-inline' 'unsafe-eval'"
#: Lets Angular read a text as if no element left it alone.
_COMPILE = '''
const place = document.body.appendChild(document.createElement('p'));
place.textContent = arguments[0];
angular.element(place).injector().invoke(['$compile', '$rootScope',
  function (compile, scope) {
    compile(place)(scope);
    scope.$digest();
  }]);
return place.textContent;
'''
#: A driver's own script is free of the policy, a timer of the page is not.
_COMPILE_LATER = f'''
const text = arguments[0];
setTimeout(function () {{
  document.body.dataset.found = (function () {{ {_COMPILE} }})(text);
}}, 0);
'''
_DIGEST = '''
angular.element(document.body).injector().get('$rootScope').$digest();
'''
_EXPRESSION = "{$ $on.constructor('document.title=/ran/.source')() $}"
_ROW = f'[id="vnfs__row__{cloud.VNF}"]'


class RunTest(window.BrowserTest):
    """Looks whether a text ran: each one sets the title."""

    def check(self):
        """Check that nothing ran, and that no script failed."""
        self.script(_DIGEST)
        self.assertNotEqual('ran', self.driver.title)
        self.assertEqual([], self.errors())


class PagesTest(RunTest):
    """The pages without the policy."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(
            content_security, 'policy', autospec=True,
            return_value=_NO_POLICY))

    def test_a_text_for_angular_would_run(self):
        self.open(hostile.addresses()['vnfs:index'])
        self.script(_COMPILE, _EXPRESSION)
        self.assertEqual('ran', self.driver.title)

    def test_every_page_and_tab(self):
        for path in (*hostile.addresses().values(), *hostile.tabs()):
            with self.subTest(path):
                self.open(path)
                self.check()

    def test_the_colors_of_the_editor(self):
        self.open(hostile.addresses()['guests:configuration'])
        self.assertIn(hostile.MARK,
                      self.see('#clickos-lit .clickos-comment').text)
        self.check()

    def test_a_tab_that_is_opened(self):
        self.open(hostile.addresses()['guests:detail'])
        for tab in ('counters', 'handlers', 'configuration', 'events',
                    'console'):
            self.click(f'a[data-target="#guest__{tab}"]')
            self.see(f'#guest__{tab} [ng-non-bindable]')
        self.see('#guest__configuration .clickos-comment')
        self.see('#clickos-plots [data-plot=packets] svg')
        self.check()

    def test_the_picture_of_a_graph(self):
        self.open(hostile.addresses()['guests:detail'])
        self.see('#clickos-graph svg .element')
        self.assertIn(hostile.MARK, self.script(
            'return document.querySelector("#clickos-graph .element title")'
            '.textContent'))
        self.check()

    def test_the_picture_of_a_project(self):
        self.open(hostile.addresses()['topology:index'])
        for place in ('.lane', '.edge', '.box'):
            self.see(f'#clickos-topology {place}')
            self.assertIn(hostile.MARK, self.script(
                'return document.querySelector(arguments[0] + " title")'
                '.textContent', f'#clickos-topology {place}'))
        self.check()

    def test_rates_of_a_chain(self):
        self.open(hostile.addresses()['chains:detail'])
        self.see('#clickos-chain tbody tr')
        self.check()

    def test_a_row_that_is_asked_again(self):
        self.cloud.answers['GET /vnflcm/v1/vnf_lcm_op_occs'] = [
            cloud.operation(operationState='PROCESSING')]
        self.open(hostile.addresses()['vnfs:index'])
        self.see(f'{_ROW}.ajax-update')
        path = f'GET /vnflcm/v1/vnf_instances/{cloud.VNF}'
        self.cloud.answers[path] = {
            **self.cloud.answers[path],
            'vnfInstanceName': f'second {hostile.EVIL}'}
        self.until(lambda: 'second' in self.script(
            'const row = document.querySelector(arguments[0]);'
            ' return row ? row.textContent : "";', _ROW),
                   'the row does not change')
        self.check()


class PolicyTest(RunTest):
    """The pages, their windows and Horizon's scripts under the policy."""

    def test_every_page_and_tab(self):
        for path in (*hostile.addresses().values(), *hostile.tabs()):
            with self.subTest(path):
                self.open(path)
                self.check()

    def test_windows(self):
        self.open(hostile.addresses()['vnfs:index'])
        for page in ('scale', 'update'):
            self.click(f'a.ajax-modal[href$="/{page}"]')
            self.see(f'.modal.in #{page}_vnf [type=submit]')
            self.check()
            self.click('.modal.in .close')
            self.until(lambda: not self.script(
                'return document.querySelector(".modal")'),
                'the window stays')

    def test_horizons_question(self):
        self.open(hostile.addresses()['vnfs:index'])
        self.click(f'{_ROW} .dropdown-toggle')
        self.click(f'{_ROW} [id$=action_terminate]')
        self.assertIn(hostile.MARK, self.see('.modal.in .modal-body').text)
        self.assertEqual([], self.driver.find_elements(
            'css selector', '.modal.in .modal-body *'))
        self.check()

    def test_the_launch_form(self):
        path = hostile.addresses()['vnfs:launch']
        self.open(path)
        self.click('.workflow a[data-target$=__networks]')
        self.check()
        self.open(hostile.addresses()['packages:index'])
        self.click(f'a.ajax-modal[href="{path}"]')
        self.click('.workflow.modal.in a[data-target$=__networks]')
        self.check()

    def test_horizons_messages(self):
        self.open(hostile.addresses()['vnfs:index'])
        self.script('horizon.alert("error", arguments[0]);'
                    ' horizon.toast.add("danger", arguments[0])',
                    hostile.EVIL)
        self.check()
        self.see('.clickos-toasts .alert')
        self.assertIn(hostile.MARK,
                      self.see('#main_content .messages .alert').text)
        self.check()

    def test_an_expression_does_not_run(self):
        self.open(hostile.addresses()['vnfs:index'])
        self.script(_COMPILE_LATER, '{$ 1 + 1 $}')
        self.see('body[data-found="2"]')
        self.script(_COMPILE_LATER, _EXPRESSION)
        found = []
        self.until(lambda: found.extend(self.errors()) or found,
                   'the policy stops nothing')
        self.assertIn('unsafe-eval', ' '.join(found))
        self.assertNotEqual('ran', self.driver.title)

    def test_markup_does_not_run(self):
        self.open(hostile.addresses()['vnfs:index'])
        for markup in ('<img src=x onerror="document.title=/ran/.source">',
                       '<svg onload="document.title=/ran/.source"></svg>',
                       '<script>document.title=/ran/.source</script>'):
            with self.subTest(markup):
                # jQuery runs the scripts of markup that it adds.
                self.script('jQuery("#main_content").append(arguments[0])',
                            markup)
                found = []
                self.until(lambda: found.extend(self.errors()) or found,
                           'the policy stops nothing')
                self.assertIn('Content Security Policy', ' '.join(found))
                self.assertNotEqual('ran', self.driver.title)
