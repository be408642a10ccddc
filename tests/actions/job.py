"""A job that uses the action of the repository: its steps are run by bash, as the service runs them.

Only the expressions that the action has are known; any other fails the test. Values reach a step by its environment.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.docs.pages import ROOT

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INSTALLED = {"install": {"python": sys.executable}}
"""The Quire of the tests in place of the step that installs one."""

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@dataclass
class Job:
    """One job in the folder of a repository. Steps are skipped by their conditions, as on the service."""

    folder: Path
    temp: Path
    event: str = "push"
    base: str = ""
    installs: bool = False
    """Whether the first step installs Quire; else it only checks its inputs, and the Quire of the tests is used."""
    environ: Mapping[str, str] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    """Exit codes of the steps that have run, by name."""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    printed: str = ""
    failed: bool = False

    def use(self, **inputs: str) -> Job:
        """Run all steps that are due."""
        self.temp.mkdir(parents=True, exist_ok=True)
        unknown = inputs.keys() - ACTION["inputs"].keys()
        assert not unknown, unknown
        given = {name: inputs.get(name, about["default"]) for name, about in ACTION["inputs"].items()}
        for step in ACTION["runs"]["steps"]:
            if self._is_due(step.get("if", ""), given):
                self._run(step, given)
        return self

    def summary(self) -> str:
        file = self.temp / "summary"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def _run(self, step: Mapping[str, Any], given: Mapping[str, str]) -> None:
        script = step["run"]
        if step.get("id") == "install" and not self.installs:
            script = script.partition('extras=""')[0]
        output = self.temp / "output"
        output.write_text("")
        environ = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.temp),
            "QUIRE_HOME": str(self.temp / "home"),
            "CI": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary"),
            "RUNNER_TEMP": str(self.temp),
            **self.environ,
            **{name: self._filled(text, given) for name, text in step["env"].items()},
        }
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
        done = subprocess.run(
            command, cwd=self.folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.printed += done.stdout
        self.outcomes[step["name"]] = done.returncode
        self.failed |= done.returncode != 0
        written = dict(line.partition("=")[::2] for line in output.read_text(encoding="utf-8").splitlines())
        if identity := step.get("id"):
            made = INSTALLED.get(identity, {}) if done.returncode == 0 else {}
            self.outputs[identity] = {"outcome": "failure" if done.returncode else "success", **made, **written}

    def _filled(self, text: str, given: Mapping[str, str]) -> str:
        return _EXPRESSION.sub(lambda found: self._value(found[1], given), text)

    def _value(self, name: str, given: Mapping[str, str]) -> str:
        match name.split("."):
            case ["inputs", wanted]:
                return given[wanted]
            case ["steps", step, "outputs", output]:
                return self.outputs.get(step, {}).get(output, "")
            case ["steps", step, "outcome"]:
                return self.outputs.get(step, {}).get("outcome", "skipped")
            case ["github", "event_name"]:
                return self.event
            case ["github", "event", "pull_request"]:
                return "yes" if self.base else ""
            case ["github", "event", "pull_request", "base", "sha"]:
                return self.base
            case ["github", "event", "pull_request", "number"]:
                return "3"
            case ["github", "repository"]:
                return "team/documents"
            case ["github", "token"]:
                return "a token"
        raise AssertionError(f"the tests do not know {name}")

    def _is_due(self, condition: str, given: Mapping[str, str]) -> bool:
        text = _EXPRESSION.sub(r"\1", condition)
        terms = [term.strip() for term in text.split("&&") if term.strip()]
        if "!cancelled()" in terms:
            terms.remove("!cancelled()")
        elif self.failed:
            return False
        for term in terms:
            name, _, wanted = (part.strip() for part in term.partition("=="))
            value = self._value(name, given)
            if not (value == wanted.strip("'") if wanted else value):
                return False
        return True
