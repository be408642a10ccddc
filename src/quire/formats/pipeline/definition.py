"""Pipelines that an agent writes at run time: the grammar for the agent, and the report of its mistakes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quire.diagnostics import Severity
from quire.source import Source

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import ParseResult

GRAMMAR = """\
A definition is YAML: documents between lines of ---, exactly one of them a pipeline, the others schemas.
[x] may be left out, a|b is a choice, … repeats. Write keys in any order.

PIPELINE  pipeline: NAME, [description: TEXT], steps: [STEP, …]
SCHEMA    schema: NAME, fields: {NAME: TYPE, …}
STEP      a mapping with one key:
  transform: {value: EXPR, [output: NAME]}
  tool:      {name: TEXT, [args: {KEY: ARG, …}], [schema: NAME], [output: NAME]}
  shell:     {command: ARG, [schema: NAME], [output: NAME]}
  agent:     {prompt: TEMPLATE, [identity: NAME], [capabilities: {tools: [NAME, …]}], [schema: NAME], [output: NAME]}
  call:      {pipeline: NAME, [pass: [NAME, …]], [output: NAME]}
  match:     {on: EXPR, cases: {LABEL: TARGET, …}, [default: TARGET], [output: NAME]}
  fold:      {over: EXPR | items: [VALUE, …], init: EXPR, do: STEP, output: NAME, [max_items: NUMBER]}
  for_each:  {over: EXPR | items: [VALUE, …], on_error: ON_ERROR, do: STEP, collect: STEP, [max_parallel: NUMBER],
              [output: NAME]}
  parallel:  {branches: {NAME: STEP, …}, collect: STEP, [on_error: ON_ERROR], [output: NAME]}
TARGET    {pipeline: NAME, [pass: [NAME, …]]}
ON_ERROR  continue | abort | retry(NUMBER)
ARG       a literal, or !expr EXPR as the whole value (never inside a list or a mapping)
TYPE      {type: bool|string|number} | {type: enum, values: [VALUE, …]} | {type: list, of: TYPE} (not of lists)
          | {type: object, fields: {NAME: TYPE, …}} | {type: ref, schema: NAME}
EXPR      an expression over ctx.NAME (stores and inputs), pipe (the result before), item and acc (inside do)
TEMPLATE  text with {ctx.NAME}, {pipe} or {NAME} of a store; only prompts are filled in

Names of pipelines, schemas and tools are literals, never expressions. A callee sees only what pass names. Branches and
items each get a copy of the stores and do not see each other. A pipeline cannot reach itself.
"""

_FENCE = re.compile(r"\s*```[A-Za-z]*[ \t]*\n(.*?)\n?```\s*", re.DOTALL)
_MOST_MISTAKES = 10


def definition_source(text: str) -> Source:
    """Return the text of a definition.

    Models often put it into a Markdown fence, which is removed: YAML cannot begin with one.
    """
    fenced = _FENCE.fullmatch(text) if text.lstrip().startswith("```") else None
    return Source.of(fenced[1] if fenced else text, "inline.yaml")


def mistakes(reading: ParseResult) -> str:
    """List the errors of a definition for its author, each with its position and what to do."""
    found = reading.of(Severity.ERROR)
    told = []
    for one in found[:_MOST_MISTAKES]:
        at = reading.source.position(one.span.start)
        told.append(f"line {at.line}, column {at.column}: {one.message}" + (f" ({one.help})" if one.help else ""))
    more = len(found) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more > 0 else "")
