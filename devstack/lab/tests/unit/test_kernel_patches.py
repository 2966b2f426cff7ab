# SPDX-License-Identifier: Apache-2.0
"""What each patch has to say, and the copies of netback outside a kernel."""

import pathlib
import re
import subprocess
import tempfile
import unittest

from clickos_lab import paths

_PATCHES = paths.REPO / 'xen-patches'
_COPIES = (_PATCHES / 'linux-6.1'
           / '0003-xen-netback-keep-pages-of-the-frontend-mapped.patch')
_BOUNDS = pathlib.Path(__file__).parent / 'staging/bounds.c'
#: What bounds.c runs; it has the rest of the kernel.
_CUT = ('struct xenvif_staged ', 'static bool staging_fits(',
        'bool xenvif_staging_read(', 'bool xenvif_staging_write(')


def _new_file(patch, name):
    """Return the text of a file that a patch adds."""
    _, _, rest = patch.partition(f'\n+++ b/{name}\n')
    hunk = rest.partition('\ndiff --git ')[0].split('\n')[1:]
    return '\n'.join(line[1:] for line in hunk if line.startswith('+'))


def _cut(source):
    """Return the parts of a source that begin like those of `_CUT`."""
    parts = re.split(r'(?<=\n})(?:;?)\n', source)
    found = []
    for start in _CUT:
        [part] = [p for p in parts if f'\n{start}' in p]
        found.append(part[part.index(f'\n{start}'):])
    return ''.join(
        f'{part};\n' if start.startswith('struct') else f'{part}\n'
        for start, part in zip(_CUT, found))


class PatchesTest(unittest.TestCase):

    def test_each_patch_tells_what_makes_it_safe(self):
        patches = sorted(_PATCHES.glob('*/*.patch'))
        self.assertGreater(len(patches), 15)
        for path in patches:
            head = path.read_text().partition('\n---\n')[0]
            self.assertRegex(head, r'\nSafe: \S', path.name)


class StagingTest(unittest.TestCase):
    """Copies from and to a page, by the very lines of the patch."""

    def test_no_copy_leaves_the_page(self):
        source = _new_file(_COPIES.read_text(),
                           'drivers/net/xen-netback/staging.c')
        with tempfile.TemporaryDirectory() as folder:
            copies = pathlib.Path(folder) / 'copies.c'
            copies.write_text(_cut(source))
            program = pathlib.Path(folder) / 'bounds'
            subprocess.run(
                ['gcc', '-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror',
                 '-I', folder, _BOUNDS, '-o', program], check=True)
            done = subprocess.run([program], capture_output=True, text=True,
                                  timeout=60)
        self.assertEqual((0, ''), (done.returncode, done.stderr), done.stdout)
        self.assertGreater(int(done.stdout), 600000)
