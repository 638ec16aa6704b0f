"""Figures and reports of what a view shows: they read finished results and never compute a view.

Everything is built on matplotlib `Figure` objects, which are images in a notebook. No function loads pyplot or touches
the global rcParams, so figures can be made in servers, in threads and in notebooks alike.

>>> from imapce.plotting import plot_embedding, save_figure
>>> save_figure(plot_embedding(np.eye(3)[:, :2], color=["a", "b", "b"]), "view.png").name
'view.png'
"""

from imapce.plotting.biplot import plot_loadings
from imapce.plotting.comparison import plot_methods, write_comparison_report
from imapce.plotting.figure import figure_target, save_figure
from imapce.plotting.overview import plot_overview, plot_profiles
from imapce.plotting.path import path_caption, plot_path
from imapce.plotting.reports.exploration import write_exploration_report
from imapce.plotting.reports.page import Section, report_target, write_report
from imapce.plotting.reports.view import write_view_report
from imapce.plotting.scatter import plot_comparison, plot_embedding
from imapce.plotting.steps import plot_proposal, plot_step
from imapce.plotting.trace import plot_trace

__all__ = [
    "Section",
    "figure_target",
    "path_caption",
    "plot_comparison",
    "plot_embedding",
    "plot_loadings",
    "plot_methods",
    "plot_overview",
    "plot_path",
    "plot_profiles",
    "plot_proposal",
    "plot_step",
    "plot_trace",
    "report_target",
    "save_figure",
    "write_comparison_report",
    "write_exploration_report",
    "write_report",
    "write_view_report",
]
