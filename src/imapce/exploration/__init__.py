"""Algorithm 1 of the paper as a session: propose a view, take clusters, look again."""

from imapce.exploration.record import AcceptedStep, Feature, Regrouping, TakenCluster
from imapce.exploration.session import Exploration
from imapce.exploration.steps import Step, View

__all__ = ["AcceptedStep", "Exploration", "Feature", "Regrouping", "Step", "TakenCluster", "View"]
