"""Where the rows of a study are from, and how to make them again."""

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape.reports.numbers import duration

if TYPE_CHECKING:
    from inscape.reports.study_run import StudyRun

_ELSEWHERE = ("machine", "host")


def origin(run: "StudyRun") -> dict[str, Any]:
    """Facts by name, versions by package, and the command."""
    return {"facts": _facts(run), "versions": _versions(run), "command": command(run)}


def _facts(run: "StudyRun") -> dict[str, str]:
    facts = {
        "study": run.study,
        "from": Path(run.reference).name if run.reference not in ("", run.study) else "",
        "scale": run.scale,
        "seed": str(run.seed),
        **{f"option {name.replace('_', '-')}": str(value) for name, value in run.options.items()},
        "rows": f"{len(run.frame)} finished, {len(run.failed)} failed",
        "store": run.store.name,
        "kind of machine": run.provenance.get("machine", ""),
    }
    if "seconds" in run.frame and len(run.frame):
        seconds = run.frame["seconds"]
        facts["work"] = (
            f"{duration(float(seconds.sum()))} in all, {duration(float(seconds.median()))} for a row (median)"
        )
    if run.finished is not None:
        facts["last row"] = f"{datetime.fromtimestamp(run.finished, UTC):%Y-%m-%d %H:%M} UTC"
    return {name: text for name, text in facts.items() if text}


def _versions(run: "StudyRun") -> dict[str, str]:
    return {name: text for name, text in run.provenance.items() if name not in _ELSEWHERE}


def command(run: "StudyRun") -> str:
    """What to type to get these rows again; Python, if the study is known to no command."""
    name = run.reference or run.study
    if name.endswith(".toml"):
        name = Path(name).name  # where it is on this machine is nobody's business
    elif not run.is_registered and ":" not in name:
        options = f", options={dict(run.options)!r}" if run.options else ""
        variable = name.replace("-", "_")
        variable = variable if variable.isidentifier() else "study"  # a store may name it anything
        return (
            f"inscape.studies.run({variable}, scale={run.scale!r}{options}, "
            f"random_state={run.seed}, out={run.study!r})"
        )
    words = ["inscape", "study", "run", name, "--scale", run.scale, "--seed", str(run.seed)]
    for option, value in run.options.items():
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        words += [f"--{option.replace('_', '-')}", text]
    return shlex.join(words)
