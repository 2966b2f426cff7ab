# SPDX-License-Identifier: Apache-2.0
"""Tests in Rust: few programs, and the same inputs in each run."""

import pathlib
import re
import tomllib
import unittest

from clickos_lab import checks
from clickos_lab import paths

#: Tests that are programs of their own; each says why in its head.
_ALONE = {
    'clickos-image/crates/click-elements/tests/table_memory.rs',
    'clickos-image/crates/click-lang/tests/memory.rs',
    'clickos-image/crates/clickos-process/tests/confinement.rs',
    'clickos-image/fuzz/tests/budget.rs',
    'clickos-image/fuzz/tests/fixed.rs',
    'interfaces/cosmos-proto/tests/memory.rs'}

#: What gives other values in each run, or takes proptest's seed away.
_CHANCE = re.compile(
    r'RandomState|getrandom|thread_rng|\brand::|OsRng|from_entropy|'
    r'[Rr]ng_?[Ss]eed|TestRng|TestRunner(?!::deterministic)|new_with_rng|'
    r'failure_persistence')

#: Files of the product, which draws keys that strangers cannot guess.
_PRODUCT = {
    'clickos-image/crates/click-run/src/setting.rs',
    'clickos-image/crates/clickos-process/src/confine/filter.rs',
    'cosmos/cosmosd/src/host/process.rs',
    'cosmos/cosmosd/src/spec.rs',
    'vale/valed/src/stations/mac_learning.rs'}


def _sources():
    return [name for name in checks.tracked() if name.endswith('.rs')]


class RustTestsTest(unittest.TestCase):

    def test_each_crate_has_one_program_of_tests(self):
        found = {name for name in _sources()
                 if pathlib.Path(name).parent.name == 'tests'
                 and 'src' not in pathlib.Path(name).parts}
        self.assertEqual(_ALONE, found)

    def test_proptest_has_a_seed(self):
        text = (paths.REPO / '.cargo/config.toml').read_text()
        seed = tomllib.loads(text)['env']['PROPTEST_RNG_SEED']
        self.assertIsInstance(seed, str, 'the environment could not set one')
        self.assertGreaterEqual(int(seed), 0)

    def test_no_source_of_chance_is_new(self):
        found = {name for name in _sources()
                 if _CHANCE.search((paths.REPO / name).read_text())}
        self.assertEqual(_PRODUCT, found)
