# SPDX-License-Identifier: Apache-2.0
"""Sphinx builds the site of all pages; ``make docs`` runs it.

The source folder is the repository's root, so that links between docs/ and
the README files of the parts are links of the site.
"""

project = 'ClickOS for OpenStack'
author = 'its maintainers'
extensions = ['myst_parser', 'cliff.sphinxext', 'oslo_config.sphinxext',
              'oslo_policy.sphinxext', 'clickos_lab.site']

root_doc = 'docs/index'
include_patterns = ['docs/**.md', 'docs/**.rst', '*.md', '**/README.md']
exclude_patterns = ['.*', '**/.*', 'target', 'build']

# Links to headings work as on a forge: [text](page.md#heading).
myst_heading_anchors = 4
# oslo_config's domain fails on links that it does not know.
myst_ref_domains = ['std']
nitpicky = True
# A pair of hyphens begins an option, and is no dash.
smartquotes = False

html_theme = 'alabaster'
html_theme_options = {'page_width': '76rem', 'sidebar_width': '16rem'}
html_copy_source = False
html_show_sourcelink = False
