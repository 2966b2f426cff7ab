# SPDX-License-Identifier: Apache-2.0
"""Texts of tenants and guests reach no page as markup, and no Angular.

The pages of the whole table of addresses are looked at: one that is missing
here fails a test.
"""

from django.core.files import uploadedfile
from django.urls import get_resolver
from django.urls import reverse

from clickos_dashboard import code
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import hostile
from tests.unit.clickos_dashboard import markup

_AJAX = {'HTTP_X_REQUESTED_WITH': 'XMLHttpRequest'}
#: What must not stand in any answer.
_RAW = ('<script>document.title', '<img src=x', '<svg/onload', '"\'><',
        '<p ng-init')
#: Pages without a text of a tenant.
_PLAIN = ('packages:upload',)
#: Answers for scripts, which test_answers_for_scripts asks for.
_DATA = {'overview:traffic', 'chains:order', 'chains:counters',
         'guests:counters', 'guests:graph'}


def _names(resolver, prefix=''):
    """Yield the names of all addresses below a resolver."""
    for name, (_path, inner) in resolver.namespace_dict.items():
        yield from _names(inner, f'{prefix}{name}:')
    for pattern in resolver.url_patterns:
        if getattr(pattern, 'name', None):
            yield prefix + pattern.name


class MarkupTest(hostile.HostileTest):
    """Looks at each page as a parser of HTML and as Angular."""

    def check(self, text, is_marked=True):
        """Check that a text stands on a page, and stands there as text."""
        self.hides(text, *_RAW)
        read = markup.Reader(text)
        self.assertEqual([], read.handlers)
        self.assertEqual([], [each for each in read.evaluated
                              if hostile.MARK in each])
        if is_marked:
            self.shows(text, hostile.MARK)

    def check_post(self, path, form, **more):
        answer = self.client.post(path, form, **more)
        self.check(answer.content.decode())

    def test_every_address_is_known(self):
        ours = {name.removeprefix('horizon:clickos:')
                for name in _names(get_resolver())
                if name.startswith('horizon:clickos:')}
        self.assertEqual(ours, set(hostile.addresses()) | _DATA)

    def test_every_page(self):
        for name, path in hostile.addresses().items():
            with self.subTest(name):
                self.check(self.page(path), name not in _PLAIN)

    def test_every_page_in_a_window(self):
        for name, path in hostile.addresses().items():
            with self.subTest(name):
                # The first tab of a guest is its graph, which comes later.
                self.check(self.page(path, **_AJAX),
                           name not in (*_PLAIN, 'guests:detail'))

    def test_every_tab(self):
        for path in hostile.tabs():
            with self.subTest(path):
                self.check(self.page(path))
                self.check(self.page(path, **_AJAX),
                           not path.endswith('__graph'))

    def test_a_row_that_is_asked_again(self):
        path = hostile.addresses()['vnfs:index']
        text = self.page(f'{path}?action=row_update&table=vnfs'
                         f'&obj_id={cloud.VNF}', **_AJAX)
        self.check(text)
        self.shows(text, '<tr')

    def test_the_editors_answers(self):
        path = hostile.addresses()['guests:configuration']
        for action in ('check', 'compare', 'replace', 'undo'):
            with self.subTest(action):
                self.check_post(path, {'action': action,
                                       'text': hostile.EVIL})

    def test_refusals_of_guest_and_tacker(self):
        places = hostile.addresses()
        for name in ('vnfs:handler', 'guests:handler'):
            self.check_post(places[name], {'value': hostile.EVIL})
        self.check_post(places['packages:upload'], {
            'csar': uploadedfile.SimpleUploadedFile(hostile.EVIL, b'PK')})
        for name in ('vnfs:launch', 'vnfs:scale', 'chains:create',
                     'chains:insert'):
            with self.subTest(name):
                self.check_post(places[name], {})
                self.check_post(places[name], {}, **_AJAX)

    def test_messages_that_the_next_page_shows(self):
        path = hostile.addresses()['vnfs:handler']
        self.cloud.answers[f'PUT /v1/servers/{cloud.SERVER}/handlers/'
                           'fw.config'] = {'revision': 1}
        self.cloud.answers[f'POST /vnflcm/v1/vnf_instances/{cloud.VNF}'
                           '/heal'] = (409, {'detail': hostile.EVIL})
        self.client.post(path, {'value': 'x'})
        index = hostile.addresses()['vnfs:index']
        self.client.post(index, {'action': f'vnfs__heal__{cloud.VNF}'})
        self.shows(self.page(index), 'class="alert alert-')
        self.client.post(index, {'action': f'vnfs__heal__{cloud.VNF}'})
        self.check(self.page(reverse('horizon:clickos:packages:upload')))


class AnswersForScriptsTest(hostile.HostileTest):

    def test_the_picture(self):
        text = self.page(reverse('horizon:clickos:guests:graph',
                                 args=(cloud.SERVER,)))
        self.assertLessEqual(
            set(markup.Reader(text).tags),
            {'svg', 'title', 'style', 'g', 'rect', 'text', 'path'})
        self.shows(text, hostile.MARK, '<svg')

    def test_json_is_no_page(self):
        for name, query in (
                ('overview:traffic', f'?server={cloud.SERVER}'),
                ('guests:counters', ''), ('chains:counters', '')):
            panel = name.partition(':')[0]
            arguments = {'guests': (cloud.SERVER,), 'chains': (
                '77777777-7777-4777-8777-777777777777',)}.get(panel, ())
            path = reverse(f'horizon:clickos:{name}', args=arguments)
            answer = self.client.get(path + query)
            with self.subTest(name):
                self.assertEqual('application/json', answer['Content-Type'])
                self.assertIn("default-src 'none'",
                              answer['Content-Security-Policy'])


class ReaderTest(hostile.HostileTest):
    """The judge of these tests sees what Angular would evaluate."""

    def test_only_marked_elements_are_left_alone(self):
        page = ('<head><title>a</title></head><p title="b">c<br>d</p>'
                f'<div {code.LEFT_ALONE} title="e">f<p>g</p>'
                '<table class="datatable"><tr title="h"><td>i</td></tr>'
                f'<tr {code.LEFT_ALONE} title="j"><td>k</td></tr></table>'
                '</div>l')
        found = markup.Reader(page).evaluated
        self.assertEqual(['b', 'c', 'd', 'datatable', 'h', 'i', 'l'], found)
