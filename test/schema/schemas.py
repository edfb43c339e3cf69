# SPDX-License-Identifier: BSD-2-Clause
"""The installed JSON Schemas, as tests use them."""

import copy
import json
import os

import jsonschema

FOLDER = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                      os.pardir, os.pardir, "data", "schema")


def load(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
        return json.load(f)


def validator(name, schema=None):
    store = {other: load(other) for other in os.listdir(FOLDER)}
    schema = schema or store[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    resolver = jsonschema.RefResolver(name, schema, store=store)
    return jsonschema.Draft202012Validator(schema, resolver=resolver)


def closed(node):
    """The schema with every object closed: members that it does not know are refused."""
    if isinstance(node, dict):
        node = {name: closed(value) for name, value in node.items()}
        if node.get("type") == "object" and "properties" in node:
            node.setdefault("additionalProperties", False)
        return node
    if isinstance(node, list):
        return [closed(value) for value in node]
    return node


_result = validator("result.schema.json", closed(copy.deepcopy(load("result.schema.json"))))


def first_problem(checker, document):
    for error in checker.iter_errors(document):
        return "%s: %s" % ("/".join(str(p) for p in error.absolute_path) or "the document",
                           error.message[:300])
    return None


def result_problem(document):
    """None, or where the answer does not fit the result schema; members unknown to it count too."""
    found = first_problem(_result, document)
    return found and "does not fit the result schema: " + found
