"""Algorithm 1 of the paper as a session: propose a view, take clusters, look again."""

from imapce.exploration.record import AcceptedStep, Feature, TakenCluster
from imapce.exploration.session import Exploration
from imapce.exploration.steps import Step, View

__all__ = ["AcceptedStep", "Exploration", "Feature", "Step", "TakenCluster", "View"]
