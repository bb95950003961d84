#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the JSON schemas that kubeconform compares manifests with, strictly, of the kinds that charts use.

    extract_schemas.py FOLDER SWAGGER CRD...

SWAGGER is Kubernetes' api/openapi-spec/swagger.json, CRD a CustomResourceDefinition as YAML. A schema is
FOLDER/KIND-GROUP-VERSION.json; a field that it does not know is an error. What is made depends on nothing else.
"""
import json
import pathlib
import sys

import yaml

PREFIX = "#/definitions/"
# Kubernetes writes some types as strings that may be numbers too.
NUMBER_OR_STRING = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
QUANTITY = {"oneOf": [{"type": "string"}, {"type": "number"}]}


def strict(schema):
    """The same, where no unknown field may stand."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return NUMBER_OR_STRING
    made = {}
    for key, value in schema.items():
        if key == "properties":
            made[key] = {name: strict(field) for name, field in value.items()}
        elif key in ("description", "default", "example", "format") or key.startswith("x-kubernetes-"):
            continue
        else:
            made[key] = strict(value)
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource")
    if "properties" in schema and "additionalProperties" not in schema and not keeps:
        made["additionalProperties"] = False
    return made


def names_in(schema):
    """The definitions that a schema refers to."""
    if isinstance(schema, list):
        for item in schema:
            yield from names_in(item)
    elif isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith(PREFIX):
            yield reference[len(PREFIX):]
        for value in schema.values():
            yield from names_in(value)


def with_definitions(name, definitions):
    needed, waiting = {}, [name]
    while waiting:
        current = waiting.pop()
        if current not in needed:
            needed[current] = definitions[current]
            waiting.extend(names_in(definitions[current]))
    return {"$ref": PREFIX + name, "definitions": needed}


def is_given(kind, schema):
    """apiVersion and kind have to be there, and no others."""
    return {"allOf": [schema, {"required": ["apiVersion", "kind"], "properties": {"kind": {"const": kind}}}]}


def write(folder, kind, group, version, schema):
    group = f"{group.split('.')[0]}-" if group else ""  # as kubeconform looks for it
    path = folder / f"{kind}-{group}{version}.json".lower()
    path.write_text(json.dumps(schema, sort_keys=True, separators=(",", ":")) + "\n", encoding="utf-8")


def extract_kubernetes(folder, swagger):
    definitions = {name: strict(schema) for name, schema in swagger["definitions"].items()}
    for name in definitions:
        if name.endswith("resource.Quantity"):
            definitions[name] = QUANTITY
    for name, schema in swagger["definitions"].items():
        for kind in schema.get("x-kubernetes-group-version-kind", []):
            if kind["kind"].endswith(("List", "Options")) or not {"metadata", "kind"} <= set(schema.get("properties", [])):
                continue
            whole = with_definitions(name, definitions)
            kept = whole.pop("definitions")
            write(folder, kind["kind"], kind["group"], kind["version"],
                  {**is_given(kind["kind"], whole), "definitions": kept})


def extract_custom(folder, crd):
    group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
    for version in crd["spec"]["versions"]:
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
        write(folder, kind, group, version["name"], is_given(kind, schema))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    extract_kubernetes(folder, json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")))
    for path in sys.argv[3:]:
        for document in yaml.safe_load_all(pathlib.Path(path).read_text(encoding="utf-8")):
            if document and document.get("kind") == "CustomResourceDefinition":
                extract_custom(folder, document)


if __name__ == "__main__":
    main()
