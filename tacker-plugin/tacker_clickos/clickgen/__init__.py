# SPDX-License-Identifier: Apache-2.0
"""From the model to what a guest gets: configuration and handler writes."""
