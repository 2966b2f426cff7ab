# SPDX-License-Identifier: Apache-2.0
"""URLs of members: those Tacker may ask, and where they hide."""

from oslo_config import cfg

from tacker_clickos import exception
from tacker_clickos import urls
from tacker_clickos import vim
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_api_filter

ALLOWED = ['http://127.0.0.1:5000/v3', 'https://nfvo.example.org',
           'http://[2001:db8::5]:80/']
FOREIGN = (
    'http://127.0.0.1:5000', 'http://127.0.0.1:5000/v33',
    'http://127.0.0.1:5000/v2', 'http://127.0.0.1:5000/v3/../v2',
    'http://127.0.0.1:5000/v3/%2e%2e/v2', 'http://127.0.0.1:5000//v3',
    'http://127.0.0.1:5000/v3?x=1', 'http://127.0.0.1:5000/v3#x',
    'https://127.0.0.1:5000/v3', 'http://127.0.0.1/v3',
    'http://127.0.0.1:5001/v3', 'http://127.0.0.1:50000/v3',
    'http://localhost:5000/v3', 'http://127.1:5000/v3',
    'http://2130706433:5000/v3', 'http://0x7f000001:5000/v3',
    'http://0177.0.0.1:5000/v3', 'http://127.0.0.1.:5000/v3',
    'http://[::1]:5000/v3', 'http://[::ffff:127.0.0.1]:5000/v3',
    'http://0.0.0.0:5000/v3', 'http://[::]:5000/v3',
    'http://169.254.169.254/', 'http://[fe80::1]/', 'http://224.0.0.1/',
    'http://127.0.0.1:5000@10.0.0.1/v3', 'http://x@127.0.0.1:5000/v3',
    'http://127.0.0.1:5000\\@10.0.0.1/v3', 'http://127.0.0.1:5000\n/v3',
    ' http://127.0.0.1:5000/v3', 'http://127.0.0.1:5000/v3\n',
    'http://127.0.0.1.nip.io:5000/v3', 'http://nfvo.example.org',
    'https://nfvo.example.org.evil.org', 'https://nfvo.example.org:444',
    'https://evil.org/https://nfvo.example.org',
    'https://nfvo.exampl\u0435.org', 'HTTP://[2001:db8:0::5]/',
    'ftp://127.0.0.1:5000/v3', 'file:///etc/passwd', 'file:/etc/passwd',
    'gopher://127.0.0.1:5000/v3', '//127.0.0.1:5000/v3',
    '127.0.0.1:5000/v3', '/v3')


class UrlsTestCase(test_api_filter.FilterTestCase):

    def setUp(self):
        super().setUp()
        cfg.CONF.set_override('allowed_urls', ALLOWED, 'clickos')
        self.addCleanup(cfg.CONF.clear_override, 'allowed_urls', 'clickos')


class AllowedTest(UrlsTestCase):

    def test_what_an_entry_covers(self):
        for url in ('http://127.0.0.1:5000/v3', 'HTTP://127.0.0.1:5000/v3/',
                    'http://127.0.0.1:05000/v3/auth/tokens',
                    'https://NFVO.example.org:443/any/path',
                    'https://nfvo.example.org', 'http://[2001:DB8::5]/x'):
            self.assertTrue(urls.is_allowed(url), url)

    def test_what_it_does_not(self):
        for url in FOREIGN + (None, 5, ['http://127.0.0.1:5000/v3']):
            self.assertFalse(urls.is_allowed(url), url)

    def test_nothing_is_allowed_by_default(self):
        cfg.CONF.clear_override('allowed_urls', 'clickos')
        for url in ALLOWED:
            self.assertFalse(urls.is_allowed(url), url)

    def test_an_entry_that_is_no_url(self):
        with self.assertRaises(ValueError):
            cfg.CONF.set_override('allowed_urls', ['ftp://x/'], 'clickos')

    def test_a_vim_of_earlier_days_is_not_asked(self):
        connect = self.patch(vim.openstack, 'connect')
        with self.assertRaisesRegex(exception.UrlRefused, 'auth_url'):
            vim.connect(dict(base.ACCESS, auth_url='http://10.0.0.1/v3'))
        connect.assert_not_called()


class RequestTest(UrlsTestCase):

    def requests(self, url):
        """Yield (api, method, path, body) with a URL in each place."""
        connection = [
            {'interfaceInfo': {'endpoint': url}},
            {'accessInfo': {'authUrl': url}},
            {'accessInfo': {'auth_url': url}},
            {'accessInfo': {'extra': {'more': [{'AUTH-URL': url}]}}}]
        for method, path in (('POST', '/vims'), ('POST', '/vims.json'),
                             ('PUT', '/vims/x')):
            yield 'vims', method, path, {'vim': {'auth_url': url}}
        for info in connection:
            body = {'vimConnectionInfo': [info]}
            for action in ('instantiate', 'heal', 'change_ext_conn'):
                yield ('lifecycle', 'POST', '/vnf_instances/x/' + action,
                       body)
        yield 'lifecycle', 'POST', '/subscriptions', {'callbackUri': url}
        yield 'lifecycle', 'POST', '/subscriptions', {
            'authentication': {'paramsOauth2ClientCredentials': {
                'tokenEndpoint': url}}}

    def test_foreign_urls(self):
        for url in FOREIGN:
            for api, method, path, body in self.requests(url):
                self.assertRefused(body, 'allowed_urls', path, method, api)

    def test_allowed_ones_pass(self):
        for api, method, path, body in self.requests(ALLOWED[0]):
            self.assertPasses(body, path, method, api)

    def test_a_url_under_a_name_not_known_here(self):
        self.assertRefused({'additionalParams': {'a': ['http://10.0.0.1/']}},
                           'additionalParams.a.0', test_api_filter.ID)

    def test_text_that_is_never_fetched(self):
        self.assertPasses(
            {'description': 'http://x/', 'additionalParams': {
                'clickos_properties': {'url': 'http://x/'}},
             'metadata': {'home': 'https://x/'}, 'mac': 'fa:16:3e:00:00:01',
             'address': 'fe80::1'}, '/vnf_instances', 'POST')

    def test_parameters_that_name_code(self):
        for name in ('lcm-operation-user-data',
                     'lcm-operation-user-data-class',
                     'LCM_operation-coordinate-new-vnf',
                     'lcm-kubernetes-def-files'):
            self.assertRefused(
                {'additionalParams': {name: 'Files/x.py'}}, name,
                test_api_filter.ID + '/instantiate', 'POST')

    def test_filters_that_are_sql(self):
        """Tacker 16 composes a statement of them."""
        for evil in ("x') or 1=1 -- ", "'", 'a\\', '"', 'x;', '\u2019',
                     ' :bind', '%', '*/'):
            for inner in ({'vnfInstanceNames': [evil]},
                          {'vnfdIds': evil}, {'description': evil},
                          {'vnfProductsFromProviders': [{evil: 'x'}]}):
                self.assertRefused(
                    {'callbackUri': ALLOWED[0], 'filter': {
                        'vnfInstanceSubscriptionFilter': inner}}, 'filter: ',
                    '/subscriptions', 'POST')
        self.assertPasses(
            {'callbackUri': ALLOWED[0], 'filter': {
                'operationTypes': ['HEAL'], 'vnfInstanceSubscriptionFilter': {
                    'vnfInstanceNames': ['my firewall-1']}}},
            '/subscriptions', 'POST')
