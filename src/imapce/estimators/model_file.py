"""TODO-DOC."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.choice.score import Candidate
from imapce.common import archive as storage
from imapce.errors import FileFormatError
from imapce.estimators.imapce import IMAPCE, Optimum
from imapce.search.solution import Trace
from imapce.tables.encoding import Encoding

Array = NDArray[np.float64]

MODEL_VERSION = 1


def write_model(path: str | os.PathLike[str], model: IMAPCE) -> None:
    """The fitted model as JSON and .npy in one zip."""
    header = {
        "parameters": plain_parameters(model),
        # JSON has no infinity.
        "alpha_": model.alpha_ if np.isfinite(model.alpha_) else "inf",
        "mu_": model.mu_,
        "n_iter_": model.n_iter_,
        "n_evaluations_": model.n_evaluations_,
        "stop_reason_": model.stop_reason_,
        "n_features_in_": model.n_features_in_,
        "feature_names_in_": [str(n) for n in model.feature_names_in_] if model._named() else None,
        "encoding": None if model._encoding is None else model._encoding.to_json(),
        "optima": [{"objective": o.objective, "kurtosis": o.kurtosis, "starts": o.starts} for o in model.optima_],
        "path": [_scores_of(candidate) for candidate in model.path_],
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
    if model.path_:
        arrays["path_components"] = np.stack([candidate.components for candidate in model.path_])
    storage.write_archive(path, "model", MODEL_VERSION, header, arrays)


def plain_parameters(model: IMAPCE) -> dict[str, Any]:
    """The constructor's parameters as JSON types; a generator or a function cannot be written and is left out."""
    parameters = model.get_params()
    parameters["verbose"] = bool(parameters["verbose"])
    if isinstance(parameters["random_state"], np.random.RandomState):
        parameters["random_state"] = None
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}


def _scores_of(candidate: Candidate) -> dict[str, Any]:
    scores = {name: value for name, value in asdict(candidate).items() if name != "components"}
    return {n: str(v) if isinstance(v, float) and not np.isfinite(v) else v for n, v in scores.items()}


def _path_of(stored: list[dict[str, Any]], components: Array) -> list[Candidate]:
    """The path as it was; files of models without one have none."""
    if len(stored) != len(components):
        raise ValueError("the path does not fit its views")
    kinds: dict[str, Any] = {"starts": int}
    return [
        Candidate(components=frame, **{name: kinds.get(name, float)(value) for name, value in one.items()})
        for one, frame in zip(stored, components, strict=True)
    ]


def parameters_of_file(parameters: dict[str, Any]) -> dict[str, Any]:
    """The constructor's parameters as they are called today.

    Before there was `rank`, μ "auto" was the paper's rule; before there was `outliers`, every row was used.
    """
    if "rank" not in parameters and parameters.get("mu") == "auto":
        parameters = {**parameters, "mu": "paper"}
    return {"outliers": "keep", **parameters}


def load_model(path: str | os.PathLike[str]) -> IMAPCE:
    """A model written by `IMAPCE.save`; damaged, foreign and hostile files are refused with one sentence.

    >>> load_model("view.imapce").transform(new_rows)         # doctest: +SKIP
    """
    header, arrays = storage.read_archive(path, "model", MODEL_VERSION)
    try:
        return _restored(header, arrays)
    except FileFormatError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise FileFormatError(f"{str(path)!r} does not hold a whole imapce model ({reason}); save it again.") from error


def _restored(header: dict[str, Any], arrays: dict[str, NDArray]) -> IMAPCE:
    model = IMAPCE(**parameters_of_file(header["parameters"]))
    model._check_parameters()
    components = arrays["components"].astype(np.float64)
    n_optima, k, d = components.shape
    shapes = {"mean": (d,), "scale": (d,), "axis_correlation": (k, d), "explained_variance_ratio": (k,)}
    shapes["trace_running"] = arrays["trace_objectives"].shape
    if header.get("path"):
        shapes["path_components"] = (len(header["path"]), k, d)
    if strangers := set(arrays) - {"components", "trace_objectives", "outliers", *shapes}:
        raise ValueError(f"array {sorted(strangers)[0]!r} is not part of a model")
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"array {name!r} has shape {arrays[name].shape}, not {shape}")
    if k != model.n_components or n_optima != len(header["optima"]) or n_optima == 0:
        raise ValueError("the components do not fit the parameters")
    model.optima_ = [
        Optimum(frame, float(one["objective"]), float(one["kurtosis"]), int(one["starts"]))
        for frame, one in zip(components, header["optima"], strict=True)
    ]
    outliers = arrays.get("outliers", np.zeros(0, dtype=np.intp))
    if outliers.ndim != 1 or outliers.dtype.kind != "i" or outliers.min(initial=0) < 0:
        raise ValueError("the outliers are no positions of rows")
    model.outliers_ = outliers.astype(np.intp)
    model.path_ = _path_of(header.get("path", []), arrays.get("path_components", np.zeros((0, k, d))))
    model.components_ = components[0]
    model.objective_, model.kurtosis_ = model.optima_[0].objective, model.optima_[0].kurtosis
    model.mean_, model.scale_ = arrays["mean"].astype(np.float64), arrays["scale"].astype(np.float64)
    model.axis_correlation_ = arrays["axis_correlation"]
    model.explained_variance_ratio_ = arrays["explained_variance_ratio"]
    model.alpha_, model.mu_ = float(header["alpha_"]), float(header["mu_"])
    model.n_iter_, model.n_evaluations_ = int(header["n_iter_"]), int(header["n_evaluations_"])
    model.stop_reason_ = str(header["stop_reason_"])
    objectives = np.where(arrays["trace_running"], arrays["trace_objectives"], np.nan)
    model.trace_ = Trace([int(e) for e in header["evaluations"]], objectives, [str(o) for o in header["outcomes"]])
    if objectives.shape != (len(model.trace_.evaluations), len(model.trace_.outcomes)):
        raise ValueError("the trace does not fit its outcomes")
    model._encoding = None if header["encoding"] is None else Encoding.from_json(header["encoding"])
    model.n_features_in_ = int(header["n_features_in_"])
    if model.n_features_in_ != (d if model._encoding is None else len(model._encoding.columns)):
        raise ValueError("the number of features does not fit the components")
    names = header["feature_names_in_"]
    if names is not None:
        if len(names) != model.n_features_in_ or not all(isinstance(name, str) for name in names):
            raise ValueError("the feature names do not fit the number of features")
        model.feature_names_in_ = np.asarray(names, dtype=object)
    model.encoded_feature_names_ = model._encoded_names(d)
    if len(model.encoded_feature_names_) != d:
        raise ValueError("the encoding does not fit the components")
    model._n_features_out = k
    return model
