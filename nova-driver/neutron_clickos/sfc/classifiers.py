# SPDX-License-Identifier: Apache-2.0
"""The service plugin ``vale_flow_classifier``: networking-sfc's, less strict.

networking-sfc refuses a new flow classifier that has packets in common with
any other one. So a chain could get no classifier that overlaps its own. The
old one stays until the chain has the new one, or packets pass by.
"""

from networking_sfc.services.flowclassifier import plugin


class FlowClassifierPlugin(plugin.FlowClassifierPlugin):
    """Lets classifiers of a project overlap while they are in no chain.

    networking-sfc still compares the classifiers of a chain with those of all
    other chains when the chain gets them.
    """

    @classmethod
    def flowclassifier_conflict(cls, first_flowclassifier,
                                second_flowclassifier):
        """Return whether another project's classifier is in the way.

        :param first_flowclassifier: the new one
        :param second_flowclassifier: one that exists
        """
        projects = (first_flowclassifier['project_id'],
                    second_flowclassifier['project_id'])
        return projects[0] != projects[1] and super().flowclassifier_conflict(
            first_flowclassifier, second_flowclassifier)
