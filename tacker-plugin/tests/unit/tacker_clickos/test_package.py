# SPDX-License-Identifier: Apache-2.0
"""Packages that reach beyond themselves never get to Tacker."""

import io
import stat
import zipfile

from tacker_clickos import exception
from tacker_clickos.package import archive
from tacker_clickos.package import review
from tacker_clickos import vnfds
from tests.unit.tacker_clickos import test_api_filter
from tests.unit.tacker_clickos import test_csar

META = 'TOSCA-Metadata/TOSCA.meta'
VNFD = 'Definitions/firewall.yaml'
URLS = ('http://127.0.0.1/x.yaml', 'https://evil.example.org/x.yaml',
        'ftp://10.0.0.1/x.yaml', 'file:///etc/passwd', 'FILE:/etc/passwd')
PATHS = ('/etc/passwd', '../../../etc/passwd', 'a/../../../etc/passwd',
         '..\\..\\x', '../../x', './../../x', '..//etc/passwd')


def files():
    return test_csar.build_csar.collect(
        test_csar.base.TEMPLATES / 'firewall')


def csar(content, *more):
    """Return the bytes of a package; more: (ZipInfo or name, bytes)."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as package:
        for name, data in [*content.items(), *more]:
            package.writestr(name, data)
    return packed.getvalue()


class PackageTestCase(test_api_filter.FilterTestCase):

    def setUp(self):
        super().setUp()
        # They have no database.
        self.release = self.patch(vnfds, 'release')
        self.patch(vnfds, 'owner', return_value='t')

    def put(self, package, **options):
        return self.send(package, test_api_filter.PACKAGE, 'PUT', 'packages',
                         content_type='application/zip', **options)

    def assertPackageRefused(self, package, place, reason):
        """Ask what the filter asks, without its process."""
        faults, vnfd_id, _texts = review.judge(package)
        self.assertIsNone(vnfd_id)
        self.assertIn(reason, faults[0])
        self.assertIn(place, faults[0])

    def assertPutRefused(self, package, place, reason, **options):
        response = self.put(package, **options)
        self.assertEqual(400, response.status_int)
        self.assertEqual('application/problem+json', response.content_type)
        self.assertIn(reason, response.json['detail'])
        self.assertIn(place, response.json['detail'])

    def changed(self, name, old, new):
        """Return the firewall's package with a text replaced in a file."""
        content = files()
        self.assertIn(old, content[name].decode())
        content[name] = content[name].decode().replace(old, new).encode()
        return csar(content)

    def added(self, text, name='Definitions/more.yaml'):
        content = text.encode() if isinstance(text, str) else text
        return csar(dict(files(), **{name: content}))


class ArchiveTest(PackageTestCase):

    def test_the_firewall_passes_byte_for_byte(self):
        package = csar(files())
        response = self.put(package)
        self.assertEqual((200, package),
                         (response.status_int, response.body))

    def test_the_id_of_its_vnfd_is_released_first(self):
        package = csar(files())
        self.put(package)
        project, vnfd_id = self.release.call_args.args
        self.assertEqual('t', project)
        self.assertIn(vnfd_id.encode(), files()[VNFD])
        self.release.side_effect = exception.VnfdInUse(
            vnfd_id=vnfd_id, package_id='p')
        refused = self.put(package)
        self.assertEqual(409, refused.status_int)
        self.assertIn('VNFD id %s: package p has it' % vnfd_id,
                      refused.json['detail'])

    def test_no_archive(self):
        for body in (b'no zip', csar(files())[:-30], b'PK\5\6',
                     b'{"address_information": "file:///etc/passwd"}'):
            self.assertPackageRefused(body, 'the package', 'not a zip archive')

    def test_json_where_tacker_takes_it_for_an_order_to_fetch(self):
        self.assertRefused(
            {'address_information': 'file:///etc/passwd', 'user_name': None},
            'not a zip archive', test_api_filter.PACKAGE, 'PUT', 'packages',
            content_type='application/json')

    def test_names(self):
        for name in ('../x', '/etc/x', 'a/../../x', 'a//x', './x', 'a\\x',
                     '.hidden', 'a/\n', 'C:x', 'a' * 300):
            self.assertPackageRefused(
                csar(files(), (name, b'')), '', 'a relative path')

    def test_a_name_with_a_null_byte(self):
        """zipfile cuts the name there."""
        package = csar(files(), ('abcd.txt', b'')).replace(
            b'abcd.txt', b'abcd\0txt')
        self.assertPackageRefused(package, 'abcd', 'a relative path')

    def test_twice_the_same_name(self):
        self.assertPackageRefused(csar(files(), ('FILES/firewall.click', b'')),
                                  'firewall.click', 'twice')

    def test_modes(self):
        for mode in (stat.S_IFLNK | 0o777, stat.S_IFIFO | 0o600,
                     stat.S_IFREG | 0o4755, stat.S_IFREG | 0o2755):
            info = zipfile.ZipInfo('Files/x')
            info.external_attr = mode << 16
            self.assertPackageRefused(csar(files(), (info, b'/etc/passwd')),
                                      'Files/x', 'expected a plain file')

    def test_methods(self):
        info = zipfile.ZipInfo('Files/x')
        info.compress_type = zipfile.ZIP_LZMA
        self.assertPackageRefused(csar(files(), (info, b'x')), 'Files/x',
                                  'other than deflate')

    def test_bombs(self):
        big = archive.MAX_UNPACKED // 4
        for more, reason in (
                ([('Files/%d' % n, b'\0' * big) for n in range(5)],
                 'the limit is 16777216'),
                ([('Files/%d' % n, b'') for n in range(300)],
                 'files, the limit is 256'),
                ([('Files/x.yaml', b' ' * 300000)], 'of YAML and manifests')):
            self.assertPackageRefused(csar(files(), *more), 'the package',
                                      reason)

    def test_a_damaged_file(self):
        package = bytearray(csar({}, ('Files/x', b'text')))
        package[30 + len('Files/x')] ^= 0xff      # its first compressed byte
        self.assertPackageRefused(bytes(package), 'the package',
                                  'not a zip archive')


class LayoutTest(PackageTestCase):
    """Archives as other systems and people make them."""

    def test_files_of_a_desktop(self):
        for name in ('__MACOSX/._Definitions', 'Definitions/.DS_Store',
                     '._Files', 'Files/Thumbs.db'):
            self.assertPackageRefused(self.added('x', name), name,
                                      "zip -d PACKAGE '__MACOSX/*'")

    def test_a_folder_around_everything(self):
        package = csar({'firewall/' + name: content
                        for name, content in files().items()})
        self.assertPackageRefused(package, 'the package',
                                  'everything is in the folder firewall')

    def test_a_descriptor_at_the_root(self):
        content = files()
        del content[META]
        vnfd = content.pop(VNFD).decode()
        for old, new in (('- clickos_types.yaml',
                          '- Definitions/clickos_types.yaml'),
                         ('../Files/', 'Files/')):
            self.assertIn(old, vnfd)
            vnfd = vnfd.replace(old, new)
        faults, vnfd_id, _texts = review.judge(
            csar({'firewall.yaml': vnfd.encode(), **content}))
        self.assertEqual([], faults)
        self.assertIn(vnfd_id, vnfd)


class ManifestTest(PackageTestCase):

    def test_lines_of_windows(self):
        content = files()
        content[META] = content[META].replace(b'\n', b'\r\n')
        self.assertPackageRefused(csar(content), META, 'end with CR LF')

    def test_sources(self):
        for source in URLS + PATHS[:5]:
            for key in ('Source', 'Name', '"Sourc\\x65"'):
                block = ('\n\n%s: "%s"\nAlgorithm: SHA-256\nHash: x\n'
                         % (key, source.replace('\\', '\\\\')))
                content = files()
                content[META] += block.encode()
                self.assertPackageRefused(csar(content), META, '')
                self.assertPackageRefused(
                    csar(dict(files(), **{'x.mf': b'a: 1' + block.encode()})),
                    'x.mf', '')

    def test_flow_style(self):
        content = files()
        content[META] += (b'\n\n{Source: "file:///etc/passwd",'
                          b' Algorithm: x, Hash: y}\n')
        self.assertPackageRefused(csar(content), META, 'is a URL')

    def test_entries(self):
        for entry in ('/etc/x.yaml', '../x.yaml', 'Files/firewall.click',
                      'Definitions/absent.yaml', 'http://x/x.yaml', '[a]'):
            self.assertPackageRefused(
                self.changed(META, 'Entry-Definitions: ' + VNFD,
                             'Entry-Definitions: ' + entry), META,
                'no YAML file of the package')


class DefinitionsTest(PackageTestCase):

    def test_imports(self):
        for name in URLS + PATHS + ('Files/x.yaml', 'x.txt', '~/x.yaml', 5,
                                    '{file: http://x/a.yaml}', '[a.yaml]',
                                    '{a: {file: x.yaml, repository: r}}'):
            self.assertPackageRefused(
                self.changed(VNFD, '  - clickos_types.yaml',
                             '  - %s' % name), VNFD, '')

    def test_an_import_that_is_missing(self):
        self.assertPackageRefused(
            self.changed(VNFD, '  - clickos_types.yaml', '  - absent.yaml'),
            VNFD, 'Definitions/absent.yaml is missing')

    def test_imports_with_a_name(self):
        self.assertEqual(200, self.put(self.changed(
            VNFD, '  - clickos_types.yaml',
            '  - types: {file: clickos_types.yaml}')).status_int)

    def test_imports_of_imports_and_of_files_nothing_imports(self):
        for text in ('imports: [http://x/y.yaml]',
                     'imports: [{a: {file: "\\x66ile:///etc/passwd"}}]',
                     'repositories: {a: {url: b}}'):
            self.assertPackageRefused(self.added(text),
                                      'Definitions/more.yaml', '')

    def test_circles_and_trees(self):
        circle = {'Definitions/a.yaml': b'imports: [b.yaml]',
                  'Definitions/b.yaml': b'imports: [a.yaml]'}
        tree = {'Definitions/%d.yaml' % n:
                b'imports: [%d.yaml, %d.yaml]' % (n + 1, n + 1)
                for n in range(30)}
        tree['Definitions/30.yaml'] = b'a: b'
        for more in (circle, tree):
            self.assertPackageRefused(csar(dict(files(), **more)),
                                      'Definitions/', 'unfold to more than')

    def test_artifacts(self):
        for path in URLS + PATHS:
            self.assertPackageRefused(
                self.changed(VNFD, 'file: ../Files/firewall.click',
                             "file: '%s'" % path), VNFD, '')
            for name in 'image', 'description':
                self.assertPackageRefused(
                    self.added("x: {artifacts: {%s: '%s'}}" % (name, path)),
                    'more.yaml', '')

    def test_a_missing_artifact(self):
        self.assertPackageRefused(
            self.changed(VNFD, '../Files/firewall.click',
                         '../Files/absent.click'),
            VNFD, 'artifact Files/absent.click is missing')

    def test_operations(self):
        for text in ('instantiate_start: {implementation: script.sh}',
                     'instantiate_start: script.sh',
                     'instantiate_start: {implementation: {primary: x.py}}',
                     'instantiate_start: {implementation: '
                     '{dependencies: [x.py]}}',
                     'operations: {instantiate_start: x.py}',
                     'operations: {instantiate_start: '
                     '{implementation: tacker.sol_refactored.x}}',
                     'instantiate_start: {implementation: vnflcm_noop}'):
            self.assertPackageRefused(
                self.changed(VNFD, 'modify_information_start: '
                             '{implementation: clickos_mgmt}', text), VNFD,
                'operations are implemented by clickos_mgmt only')

    def test_scripts_of_a_flavours_other_files(self):
        self.assertPackageRefused(
            self.added('topology_template: {node_templates: {VNF: {interfaces:'
                       ' {Vnflcm: {instantiate_start: ./Scripts/x.py}}}}}'),
            'more.yaml', 'operations are implemented by')

    def test_text_may_name_a_url(self):
        for text in ('description: http://example.org/',
                     'x: {artifacts: {a: {description: "http://e.org/"}}}'):
            self.assertEqual(200, self.put(self.added(text)).status_int)


class YamlTest(PackageTestCase):

    def test_tags_and_aliases(self):
        for text, reason in (
                ('a: !!python/object/apply:os.system [id]',
                 'more.yaml:1: a tag'),
                ('a: 1\nb: !x y', 'more.yaml:2: a tag (!x)'),
                ('a: &x [1]\nb: *x', 'more.yaml:2: an alias (*x)'),
                ('a: &x {b: 1}\nc: {d: [*x, *x]}', 'an alias'),
                ('a: &x [*x]', 'an alias')):
            self.assertPackageRefused(self.added(text), 'more.yaml', reason)

    def test_depth(self):
        for text in ('[' * 100, '[' * 100000, '{a: ' * 100):
            self.assertPackageRefused(self.added(text), 'more.yaml',
                                      'more than 32 levels')

    def test_what_the_two_parsers_of_pyyaml_read_differently(self):
        self.assertPackageRefused(self.added('\n\ufeffa: b'),
                                  'more.yaml', 'two meanings')

    def test_what_is_not_yaml(self):
        for text in ('a: [', '{a: b', '--- 1\n--- 2\n', b'\xff\xfea\0:\0',
                     'a: ' + '9' * 5000, '? {a: b}\n: c', '<<: 1',
                     'a: 2026-99-99', '=: ='):
            self.assertPackageRefused(self.added(text), 'more.yaml',
                                      'more.yaml')

    def test_every_parsed_suffix(self):
        for name in ('x.yml', 'x.YAML', 'BaseHOT/simple/x.yaml'):
            self.assertPackageRefused(self.added('a: !!x 1', name), name,
                                      'a tag')
