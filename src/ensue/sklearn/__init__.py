"""The tasks as scikit-learn estimators.

    from ensue.sklearn import SequenceClassifier, TableRegressor

They follow scikit-learn's contract, and train Ensue's own models: what `fit` has learned is
`model_`, the same `Classifier`, `Regressor`, `Labeller` or `TableModel` as without scikit-learn.
"""

from ensue.errors import MissingExtra

try:
    from sklearn import base as _base  # noqa: F401
except ImportError:
    raise MissingExtra(
        "ensue.sklearn needs the package scikit-learn, which is not installed: "
        "pip install 'ensue[sklearn]'"
    ) from None

from ensue.sklearn.sequences import SequenceClassifier, SequenceLabeller, SequenceRegressor
from ensue.sklearn.tables import TableClassifier, TableRegressor

__all__ = [
    "SequenceClassifier",
    "SequenceLabeller",
    "SequenceRegressor",
    "TableClassifier",
    "TableRegressor",
]
