"""Models on disk: parameters, fitted attributes and the columns they belong to, in the archive format; never pickle."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.archive import in_json, read_archive, write_archive
from imapce.common.arrays import Array
from imapce.common.checks import is_whole
from imapce.errors import FileFormatError
from imapce.estimators.imapce import IMAPCE
from imapce.priors.effect import Effect
from imapce.priors.labels import LabelCode
from imapce.search.race import Optimum, Trace, Views
from imapce.tables.learn import Encoding
from imapce.tables.reader import Reader

MODEL_VERSION = 1
# What a file tells of an optimum besides its axes; files written before a name was known lack it.
OPTIMUM_NUMBERS = (
    *("objective", "kurtosis", "alpha", "mu", "separation", "leakage", "seen", "kept"),
    "relative_gradient",
)
READ_FROM = ("view", "clusters", "chance")
OPTIMUM_FIELDS = (*OPTIMUM_NUMBERS, "starts", "converged")


def write_model(path: str | os.PathLike[str], model: IMAPCE) -> None:
    """Write a fitted model as JSON and .npy in one zip."""
    names, encoding = getattr(model, "feature_names_in_", None), model.reader_.encoding
    header = {
        "parameters": plain_parameters(model),
        "alpha_": in_json(model.alpha_),
        "mu_": model.mu_,
        "n_iter_": model.n_iter_,
        "n_evaluations_": model.n_evaluations_,
        "stop_reason_": model.stop_reason_,
        "engine_": model.engine_,
        "read_back_": model.read_back_,
        "n_clusters_": model.n_clusters_,
        "effect": None if model.effect_ is None else _effect_in_json(model.effect_),
        "n_features_in_": model.n_features_in_,
        "feature_names_in_": None if names is None else [str(name) for name in names],
        "encoding": None if encoding is None else encoding.to_json(),
        "left_out": list(model.reader_.left_out),
        "notes_": [str(note) for note in model.notes_],
        "optima": [_optimum_in_json(optimum) for optimum in model.optima_],
        "path": [_optimum_in_json(optimum) for optimum in model.path_],
        "outcomes": model.trace_.outcomes,
        "evaluations": model.trace_.evaluations,
    }
    running = np.isfinite(model.trace_.objectives)
    arrays = {
        "components": np.stack([optimum.components for optimum in model.optima_]),
        "mean": model.mean_,
        "scale": model.scale_,
        "axis_correlation": model.axis_correlation_,
        "explained_variance_ratio": model.explained_variance_ratio_,
        "trace_objectives": np.where(running, model.trace_.objectives, 0.0),
        "trace_running": running,
        "outliers": model.outliers_,
    }
    if model.effect_ is not None:
        arrays["effect_weights"] = model.effect_.weights
    if model.path_:
        arrays["path_components"] = np.stack([optimum.components for optimum in model.path_])
    write_archive(path, "model", MODEL_VERSION, header, arrays)


def load_model(path: str | os.PathLike[str]) -> IMAPCE:
    """A model written by `IMAPCE.save`; damaged, foreign and hostile files are refused with one sentence.

    >>> import tempfile
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     IMAPCE(alpha=0.0, mu=1.0, random_state=0).fit(X).save(f"{folder}/view.imapce")
    ...     load_model(f"{folder}/view.imapce").transform(X).shape
    (40, 2)
    """
    header, arrays = read_archive(path, "model", MODEL_VERSION)
    try:
        return _restored(header, arrays)
    except FileFormatError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise FileFormatError(f"{str(path)!r} does not hold a whole imapce model ({reason}); save it again.") from error


def plain_parameters(model: IMAPCE) -> dict[str, Any]:
    """The constructor's parameters as JSON types; a generator or a function cannot be written and is left out.

    >>> plain_parameters(IMAPCE(mu=np.float64(3.0)))["mu"]
    3.0
    """
    parameters = model.get_params()
    parameters["verbose"] = bool(parameters["verbose"])
    if isinstance(parameters["random_state"], np.random.RandomState):
        parameters["random_state"] = None
    return {
        name: in_json(value.item() if isinstance(value, np.generic) else value) for name, value in parameters.items()
    }


def parameters_of_file(parameters: dict[str, Any]) -> dict[str, Any]:
    """The constructor's parameters as they are called today.

    Files of the first days know neither `rank` nor `outliers`: μ "auto" was the paper's rule then. `rank` chose between
    ways to compare optima, of which there is one now; before there was `outliers`, every row was used.

    >>> parameters_of_file({"mu": "auto"})
    {'outliers': 'keep', 'mu': 'paper'}
    >>> parameters_of_file({"mu": "auto", "rank": "separation"})
    {'outliers': 'keep', 'mu': 'auto'}
    """
    if parameters.get("mu") == "auto" and not {"rank", "outliers"} & set(parameters):
        parameters = {**parameters, "mu": "paper"}
    if parameters.get("alpha") == in_json(np.inf):
        parameters = {**parameters, "alpha": np.inf}
    return {"outliers": "keep", **{name: value for name, value in parameters.items() if name != "rank"}}


def _optimum_in_json(optimum: Optimum) -> dict[str, Any]:
    return {name: in_json(getattr(optimum, name)) for name in OPTIMUM_FIELDS}


def _optima(stored: list[dict[str, Any]], components: Array, what: str) -> list[Optimum]:
    if len(stored) != len(components):
        raise ValueError(f"the {what} does not fit its views")
    optima = Views()
    for one, axes in zip(stored, components, strict=True):
        if strangers := set(one) - set(OPTIMUM_FIELDS):
            raise ValueError(f"{sorted(strangers)[0]!r} is no part of an optimum")
        numbers: dict[str, Any] = {name: float(one[name]) for name in OPTIMUM_NUMBERS if name in one}
        converged = bool(one.get("converged", True))
        optima.append(Optimum(axes, starts=int(one["starts"]), converged=converged, **numbers))
    return optima


def _effect_in_json(effect: Effect) -> dict[str, Any]:
    """What a file tells of an effect besides its weights."""
    codes = [
        {
            "names": None if code.names is None else list(code.names),
            "centre": code.centre.tolist(),
            "unit": code.unit,
            "title": code.title,
        }
        for code in effect.codes
    ]
    return {"columns": effect.columns.tolist(), "codes": codes}


def _effect(stored: dict[str, Any] | None, weights: Array | None, d: int) -> Effect | None:
    """The effect of the known; files written before there was one have none."""
    if stored is None or weights is None:
        if stored is not None or weights is not None:
            raise ValueError("the effect of the known is not whole")
        return None
    columns = np.array([_place(column, d) for column in stored["columns"]], dtype=np.intp)
    codes = tuple(LabelCode.of_file(one, np.array([float(x) for x in one["centre"]])) for one in stored["codes"])
    width = len(columns) + sum(len(code.centre) for code in codes)
    if len(set(columns.tolist())) != len(columns) or weights.shape != (width, d) or not width:
        raise ValueError("the effect of the known does not fit its columns and labels")
    return Effect(columns, codes, weights.astype(np.float64))


def _place(column: Any, d: int) -> int:
    if not is_whole(column) or not 0 <= column < d:
        raise ValueError(f"{column!r} is no place of a known column")
    return int(column)


def _read_back(told: dict[str, Any] | None) -> dict[str, float | None] | None:
    """How well the known is read back; older files tell of the view alone, as "score", and the first ones nothing."""
    if told is None:
        return None
    if "score" in told:
        told = {"view": told["score"], "clusters": None, "chance": told["chance"]}
    return {name: None if told[name] is None else float(told[name]) for name in READ_FROM}


def _restored(header: dict[str, Any], arrays: dict[str, NDArray]) -> IMAPCE:
    model = IMAPCE(**parameters_of_file(header["parameters"]))
    model.check_parameters()
    components = arrays["components"].astype(np.float64)
    n_optima, k, d = components.shape
    shapes = {"mean": (d,), "scale": (d,), "axis_correlation": (k, d), "explained_variance_ratio": (k,)}
    shapes["trace_running"] = arrays["trace_objectives"].shape
    if header.get("path"):
        shapes["path_components"] = (len(header["path"]), k, d)
    if strangers := set(arrays) - {"components", "trace_objectives", "outliers", "effect_weights", *shapes}:
        raise ValueError(f"array {sorted(strangers)[0]!r} is not part of a model")
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"array {name!r} has shape {arrays[name].shape}, not {shape}")
    if k != model.n_components or n_optima != len(header["optima"]) or n_optima == 0:
        raise ValueError("the components do not fit the parameters")
    outliers = arrays.get("outliers", np.zeros(0, dtype=np.intp))
    if outliers.ndim != 1 or outliers.dtype.kind != "i" or outliers.min(initial=0) < 0:
        raise ValueError("the outliers are no positions of rows")
    model.outliers_ = outliers.astype(np.intp)
    model.alpha_, model.mu_ = float(header["alpha_"]), float(header["mu_"])
    # Files written before optima told their setting tell that of the view alone.
    first, *others = header["optima"]
    first = {"alpha": model.alpha_, "mu": model.mu_, **first}
    model.optima_ = _optima([first, *others], components, "list of optima")
    model.path_ = _optima(header.get("path", []), arrays.get("path_components", np.zeros((0, k, d))), "path")
    model.components_ = components[0]
    model.objective_, model.kurtosis_ = model.optima_[0].objective, model.optima_[0].kurtosis
    model.mean_, model.scale_ = arrays["mean"].astype(np.float64), arrays["scale"].astype(np.float64)
    model.axis_correlation_ = arrays["axis_correlation"]
    model.explained_variance_ratio_ = arrays["explained_variance_ratio"]
    model.n_iter_, model.n_evaluations_ = int(header["n_iter_"]), int(header["n_evaluations_"])
    model.stop_reason_ = str(header["stop_reason_"])
    model.engine_ = str(header.get("engine_", "dense"))
    model.read_back_ = _read_back(header.get("read_back_"))
    model.effect_ = _effect(header.get("effect"), arrays.get("effect_weights"), d)
    count = header.get("n_clusters_")
    model.n_clusters_ = None if count is None else int(count)
    objectives = np.where(arrays["trace_running"], arrays["trace_objectives"], np.nan)
    model.trace_ = Trace([int(e) for e in header["evaluations"]], objectives, [str(o) for o in header["outcomes"]])
    if objectives.shape != (len(model.trace_.evaluations), len(model.trace_.outcomes)):
        raise ValueError("the trace does not fit its outcomes")
    _restore_columns(model, header, d)
    return model


def _restore_columns(model: IMAPCE, header: dict[str, Any], d: int) -> None:
    encoding = None if header["encoding"] is None else Encoding.from_json(header["encoding"])
    # Files written before tables were read here tell of nothing left out.
    model.reader_ = Reader(d, encoding, left_out=tuple(str(name) for name in header.get("left_out", ())))
    model.notes_ = [str(note) for note in header.get("notes_", ())]
    model.n_features_in_ = int(header["n_features_in_"])
    if model.n_features_in_ != (d if encoding is None else len(encoding.columns)):
        raise ValueError("the number of features does not fit the components")
    names = header["feature_names_in_"]
    if names is not None:
        if len(names) != model.n_features_in_ or not all(isinstance(name, str) for name in names):
            raise ValueError("the feature names do not fit the number of features")
        model.feature_names_in_ = np.asarray(names, dtype=object)
    model.encoded_feature_names_ = model.reader_.names
    if len(model.encoded_feature_names_) != d:
        raise ValueError("the encoding does not fit the components")
