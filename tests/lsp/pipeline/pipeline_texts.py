"""Texts that the tests of pipelines in editors share."""

from __future__ import annotations

HEAD = """\
schema: Review
fields:
  passed: {type: bool}
  notes: {type: string, required: false, description: "Why."}
  kind: {type: enum, values: [short, long]}
---
pipeline: main
dialect: quire
input: {doc: {type: string, description: "The text."}, readers: {type: list, of: {type: ref, schema: Review}}}
steps:
  - agent: {prompt: "Review {ctx.doc}", schema: Review, output: review}
"""
LOOK = """\
pipeline: look_at
description: Looks at a text.
dialect: quire
input: {doc: {type: string}, depth: {type: number, default: 1}}
steps:
  - transform: {value: "ctx.doc + text(ctx.depth)"}
"""
