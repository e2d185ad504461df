"""The tasks as scikit-learn estimators.

from ensue.sklearn import SequenceClassifier, TableRegressor

They follow scikit-learn's conventions and train Ensue's models. `fit` stores the fitted model in
`model_`: a `Classifier`, `Regressor`, `Labeller` or `TableModel`.
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
