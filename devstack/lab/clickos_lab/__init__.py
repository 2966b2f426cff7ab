# SPDX-License-Identifier: Apache-2.0
"""The all-in-one OpenStack the demonstration and the tests run on.

Modules up to the virtual environment (``prereq``, ``apt``, ``venv``,
``rust``) use the standard library only; ``cloud`` and what uses it needs
the packages of ``requirements.txt``.
"""
