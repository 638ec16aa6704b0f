"""The paper's comparison for one's own data: the same rows, the same knowledge and the same scores for all methods.

>>> [method.title for method in chosen_methods("PCA,ct-SNE")]
['PCA', 'ct-SNE']
"""

from imapce.comparison.compare import Comparison, MethodResult, compare
from imapce.comparison.methods import METHODS, Method, chosen_methods

__all__ = ["METHODS", "Comparison", "Method", "MethodResult", "chosen_methods", "compare"]
