# SPDX-License-Identifier: Apache-2.0
"""No part of the dashboard makes markup or code of a text.

The pages themselves are looked at in test_hostile_names; here are the ways
by which a new page or script could leave what protects them.
"""

import pathlib
import re
import unittest

import clickos_dashboard

_ROOT = pathlib.Path(clickos_dashboard.__file__).parent
_TEMPLATES = _ROOT / 'templates/clickos'
#: Each sets ng-non-bindable around its blocks.
_GUARDS = {'clickos/base.html', 'clickos/tab.html', 'clickos/_form.html'}
#: Templates that extend none of these: guards, parts that others include,
#: rows, and Horizon's page without content.
_OTHERS = {'base.html', 'tab.html', '_form.html', '_launch.html',
           '_guests.html', '_handlers_table.html', '_search.html',
           '_zoom.html', 'frame.html'}
_EXTENDS = re.compile(r"{% extends '([^']+)' %}")
_SINKS = {
    '.js': re.compile(
        r'\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|'
        r'setHTMLUnsafe|createContextualFragment|(eval|Function)\()'
        r'|\$\(|jQuery|\.(html|append|prepend|after|before)\(\s*[\'"]<'
        r'|set(Timeout|Interval)\(\s*[\'"]|text/html|javascript:'),
    '.html': re.compile(
        r'\|\s*safe(seq)?\b|autoescape|<script(?! src=)|\son\w+=|javascript:'
        r'|\sstyle=|\sng-(?!non-bindable|csp)'),
    '.py': re.compile(
        r'\b(mark_safe|format_html\w*|SafeString|SafeText|safestring|'
        r'json_script|difflib|pickle|eval|exec)\b')}


def _files(kind):
    return sorted(_ROOT.rglob(f'*{kind}'))


class SinksTest(unittest.TestCase):

    def test_no_file_has_a_sink(self):
        for kind, sink in _SINKS.items():
            files = _files(kind)
            self.assertGreater(len(files), 5)
            found = [(path.name, match[0]) for path in files
                     for match in sink.finditer(path.read_text())]
            self.assertEqual([], found)

    def test_the_patterns_find_sinks(self):
        for kind, text in (('.js', 'a.innerHTML = b'), ('.js', '$(text)'),
                           ('.js', 'new Function("a")'),
                           ('.html', '{{ a|safe }}'),
                           ('.html', '<script>a</script>'),
                           ('.html', '<p onclick="a">'),
                           ('.html', '<p ng-bind-html="a">'),
                           ('.py', 'return mark_safe(text)')):
            with self.subTest(text):
                self.assertTrue(_SINKS[kind].search(text))

    def test_only_one_class_gives_markup_to_templates(self):
        found = [path.name for path in _files('.py')
                 if '__html__' in path.read_text()]
        self.assertEqual(['code.py'], found)


class TemplatesTest(unittest.TestCase):

    def parents(self):
        return {path.name: _EXTENDS.findall(path.read_text())
                for path in _TEMPLATES.glob('*.html')}

    def test_each_template_has_a_guard_above_it(self):
        parents = self.parents()
        self.assertLessEqual(_OTHERS, set(parents))
        unguarded = [name for name, found in parents.items()
                     if name not in _OTHERS and not _GUARDS & set(found)]
        self.assertEqual([], unguarded)

    def test_a_guard_leaves_its_content_alone(self):
        for name in (*_GUARDS, 'clickos/_launch.html'):
            text = (_TEMPLATES.parent / name).read_text()
            outside = re.sub(
                r'<div ng-non-bindable>.*?</div>', '', text)
            with self.subTest(name):
                self.assertIn('<div ng-non-bindable>', text)
                self.assertNotRegex(
                    outside, r'{% block (content|main|header|tab|modal-\w+) %}'
                    r'(?!{% endblock|<div)[^{]*{{')

    def test_no_view_uses_a_template_of_horizon(self):
        for path in _files('.py'):
            for found in re.findall(r"template\w* = '([^']+)'",
                                    path.read_text()):
                with self.subTest(f'{path.name}: {found}'):
                    self.assertTrue(found.startswith('clickos/'))
