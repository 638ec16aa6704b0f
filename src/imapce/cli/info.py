"""`imapce info`: what is in a model file, in words or as JSON."""

from __future__ import annotations

import json

import typer

from imapce.cli.options import AsJson, ModelFile


def info(model: ModelFile, as_json: AsJson = False) -> None:
    """Tell what is in a model file.

    Example:

        imapce info view.imapce --json
    """
    from rich.console import Console

    from imapce.cli.screen import facts_table, fit_facts, model_facts, print_model
    from imapce.common.words import listing
    from imapce.estimators.model_file import load_model

    fitted = load_model(model)
    facts = model_facts(fitted)
    if as_json:
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    columns = "no names, by position" if facts["columns"] is None else listing(facts["columns"], 10)
    console = Console()
    told = {
        "format version": str(facts["format_version"]),
        "features": f"{facts['n_features']:,} ({columns})",
        "parameters": ", ".join(f"{name}={value!r}" for name, value in facts["parameters"].items()),
    }
    console.print(facts_table(told | fit_facts(fitted)))
    print_model(console, fitted)
