# SPDX-License-Identifier: Apache-2.0
"""Pictures of documents become small and remain what they were."""

from PIL import Image
from PIL import ImageChops

from clickos_lab import pictures
from tests.unit import base


class PicturesTest(base.TestCase):

    def test_many_colors_become_a_palette(self):
        path = self.folder / 'gradient.png'
        picture = Image.new('RGB', (256, 64))
        picture.putdata([(x, y, (x * y) % 251)
                         for y in range(64) for x in range(256)])
        picture.save(path)
        before = path.stat().st_size
        pictures.shrink(path)
        self.assertLess(path.stat().st_size, before)
        with Image.open(path) as made:
            self.assertEqual(('P', (256, 64)), (made.mode, made.size))
            change = ImageChops.difference(picture, made.convert('RGB'))
        self.assertLess(max(high for _, high in change.getextrema()), 64)

    def test_a_small_picture_is_left_alone(self):
        path = self.folder / 'dot.png'
        Image.new('1', (1, 1)).save(path)
        before = path.read_bytes()
        pictures.shrink(path)
        self.assertEqual(before, path.read_bytes())
